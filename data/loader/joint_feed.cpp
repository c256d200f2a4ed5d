// SPDX-License-Identifier: Apache-2.0
#include "data/loader/joint_feed.h"

#include <utility>

#include "core/check.h"

namespace aifs::data {

JointFeed::JointFeed(const std::vector<FeedSource>& sources,
                     const std::vector<BatchRequest>& requests, c10::Device device) {
  AIFS_CHECK(!sources.empty(), "a feed of no dataset");
  for (const FeedSource& s : sources)
    feeds_.push_back(std::make_unique<DeviceFeed>(s.source, s.loading, requests, device));
}

void JointFeed::add(const std::vector<BatchRequest>& requests) {
  for (const auto& feed : feeds_)
    feed->add(requests);
}

bool JointFeed::next(std::vector<Batch>& batches, const GiveUp& give_up) {
  while (come_.size() < feeds_.size()) {
    Batch batch;
    if (!feeds_[come_.size()]->next(batch, give_up)) return false;
    come_.push_back(std::move(batch));
  }
  batches = std::exchange(come_, {});
  return true;
}

double JointFeed::wait_s() const {
  double sum = 0.0;
  for (const auto& feed : feeds_)
    sum += feed->wait_s();
  return sum;
}

double JointFeed::busy_s() const {
  double sum = 0.0;
  for (const auto& feed : feeds_)
    sum += feed->busy_s();
  return sum;
}

std::vector<Batch> read_batches(const std::vector<FeedSource>& sources,
                                const BatchRequest& request) {
  std::vector<Batch> batches;
  for (const FeedSource& s : sources)
    batches.push_back(read_batch(s.source, s.loading, request));
  return batches;
}

}  // namespace aifs::data
