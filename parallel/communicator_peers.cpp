// SPDX-License-Identifier: Apache-2.0
#include "parallel/communicator_peers.h"

#include <ATen/ATen.h>

#include <numeric>

namespace aifs::parallel {

namespace {

// An array as rows of items. One that is only read is not written to.
at::Tensor item_rows(const void* items, int64_t count, int64_t width) {
  if (count == 0) return at::empty({0, width}, at::kByte);
  return at::from_blob(const_cast<void*>(items), {count, width}, at::kByte);
}

int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace

CommunicatorPeers::CommunicatorPeers(Communicator& group, const char* work)
    : group_(group), work_(work) {
  if (work_) at_work_ = group_.at_work(work_);
}

template <class Operation>
void CommunicatorPeers::in_group(const Operation& operation) {
  at_work_.reset();
  operation();
  if (work_) at_work_ = group_.at_work(work_);
}

std::vector<int64_t> CommunicatorPeers::exchange_counts(const std::vector<int64_t>& counts) {
  const Counts one(counts.size(), 1);
  at::Tensor theirs;
  in_group([&] { theirs = group_.all_to_all_rows(at::tensor(counts, at::kLong), one, one); });
  return {theirs.const_data_ptr<int64_t>(), theirs.const_data_ptr<int64_t>() + theirs.numel()};
}

void CommunicatorPeers::exchange_items(const void* items, const std::vector<int64_t>& counts,
                                       void* received, const std::vector<int64_t>& received_counts,
                                       int64_t width) {
  in_group([&] {
    group_.all_to_all_rows_into(item_rows(received, total(received_counts), width),
                                item_rows(items, total(counts), width), counts, received_counts);
  });
}

void CommunicatorPeers::gather_items(const void* items, void* all,
                                     const std::vector<int64_t>& counts, int64_t width) {
  const int64_t own = counts[static_cast<size_t>(group_.rank())];
  in_group([&] {
    group_.all_gather_rows_into(item_rows(all, total(counts), width), item_rows(items, own, width),
                                counts);
  });
}

}  // namespace aifs::parallel
