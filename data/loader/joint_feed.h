// SPDX-License-Identifier: Apache-2.0
// Batches of several datasets side by side: one feed for each, which all read the same dates.
#pragma once

#include <memory>
#include <vector>

#include "data/loader/device_feed.h"

namespace aifs::data {

// A dataset and how it is read; both outlive the feed.
struct FeedSource {
  const SampleSource& source;
  const LoaderOptions& loading;
};

class JointFeed {
 public:
  // As DeviceFeed, for every dataset. Rows of a request mean the same dates in all of them.
  JointFeed(const std::vector<FeedSource>& sources, const std::vector<BatchRequest>& requests,
            c10::Device device);

  // As DeviceFeed::add().
  void add(const std::vector<BatchRequest>& requests);

  // As DeviceFeed::next(): one batch for each dataset, in their order. After GivenUp the same
  // batches can be asked for again; what has come of them is kept.
  bool next(std::vector<Batch>& batches, const GiveUp& give_up = {});

  // Seconds next() has spent waiting, and reader threads reading, since construction.
  double wait_s() const;
  double busy_s() const;

 private:
  std::vector<std::unique_ptr<DeviceFeed>> feeds_;
  std::vector<Batch> come_;  // of the next batches, those that are there
};

// Reads one batch of each dataset in the calling thread.
std::vector<Batch> read_batches(const std::vector<FeedSource>& sources,
                                const BatchRequest& request);

}  // namespace aifs::data
