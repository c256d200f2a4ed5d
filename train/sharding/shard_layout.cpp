// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/shard_layout.h"

#include <algorithm>
#include <ranges>

#include "core/check.h"
#include "core/shares.h"

namespace aifs::train {

namespace {

// Entries that have a place of their own in the flat buffers, in the order of these.
std::vector<size_t> by_offset(const model::ParameterSet& parameters) {
  const std::vector<model::Parameter>& entries = parameters.entries();
  std::vector<size_t> order;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].is_optimised()) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return entries[a].offset < entries[b].offset; });
  return order;
}

}  // namespace

ShardLayout::ShardLayout(const model::ParameterSet& parameters, int64_t bucket_elements,
                         bool by_unit, int64_t num_shards, int64_t shard)
    : bucket_of_(parameters.entries().size(), 0) {
  AIFS_CHECK(parameters.is_flat(), "shards are those of flat parameters");
  int64_t end = parameters.flat_size();
  for (const size_t i : std::views::reverse(by_offset(parameters))) {
    const model::Parameter& parameter = parameters.entries()[i];
    const bool sliced = parameter.offset >= parameters.first_sliced();
    const bool full = !buckets_.empty() && (sliced != buckets_.back().sliced ||
                                            (by_unit ? buckets_.back().unit != parameter.unit
                                                     : buckets_.back().size() >= bucket_elements));
    if (buckets_.empty() || full)
      buckets_.push_back({.end = end, .unit = by_unit ? parameter.unit : 0, .sliced = sliced});
    buckets_.back().parameters.push_back(i);
    buckets_.back().begin = end = parameter.offset;
  }
  std::ranges::reverse(buckets_);
  constexpr int64_t kBlock = model::ParameterSet::kAlignment;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    ShardBucket& bucket = buckets_[b];
    std::ranges::reverse(bucket.parameters);
    for (const size_t i : bucket.parameters)
      bucket_of_[i] = b;
    AIFS_CHECK(bucket.size() % kBlock == 0, "a bucket of ", bucket.size(), " elements");
    for (const int64_t blocks : balanced_counts(bucket.size() / kBlock, num_shards))
      bucket.counts.push_back(blocks * kBlock);
    const auto own = static_cast<size_t>(shard);
    bucket.own_begin = bucket.begin + starts_of(bucket.counts)[own];
    bucket.own_size = bucket.counts[own];
    bucket.local_begin = local_size_;
    local_size_ += bucket.own_size;
    if (!bucket.sliced) local_first_sliced_ = local_size_;
  }
}

}  // namespace aifs::train
