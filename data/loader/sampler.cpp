// SPDX-License-Identifier: Apache-2.0
#include "data/loader/sampler.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/rng.h"
#include "core/shares.h"

namespace aifs::data {

std::vector<int64_t> usable_anchors(int64_t num_rows, std::span<const int64_t> missing_rows,
                                    std::span<const int64_t> offsets) {
  std::vector<bool> missing(static_cast<size_t>(num_rows), false);
  for (const int64_t row : missing_rows) {
    if (row >= 0 && row < num_rows) missing[static_cast<size_t>(row)] = true;
  }
  std::vector<int64_t> anchors;
  for (int64_t row = 0; row < num_rows; ++row) {
    const bool usable = std::all_of(offsets.begin(), offsets.end(), [&](int64_t offset) {
      const int64_t at = row + offset;
      return at >= 0 && at < num_rows && !missing[static_cast<size_t>(at)];
    });
    if (usable) anchors.push_back(row);
  }
  return anchors;
}

std::vector<int64_t> common_anchors(std::span<const std::vector<int64_t>> datasets) {
  if (datasets.empty()) return {};
  std::vector<int64_t> common = datasets[0];
  for (const std::vector<int64_t>& anchors : datasets.subspan(1)) {
    std::vector<int64_t> both;
    std::set_intersection(common.begin(), common.end(), anchors.begin(), anchors.end(),
                          std::back_inserter(both));
    common = std::move(both);
  }
  if (datasets.size() == 1) return common;
  const auto low_byte_first = [](int64_t a, int64_t b) {
    for (int shift = 0; shift < 64; shift += 8) {
      const int64_t x = (a >> shift) & 0xff, y = (b >> shift) & 0xff;
      if (x != y) return x < y;
    }
    return false;
  };
  std::sort(common.begin(), common.end(), low_byte_first);
  return common;
}

std::vector<int64_t> balanced_offsets(int64_t n, int64_t parts) {
  return starts_of(balanced_counts(n, parts));
}

Sampler::Sampler(std::vector<int64_t> anchors, const SamplerOptions& options)
    : anchors_(std::move(anchors)), options_(options) {
  AIFS_CHECK(options.batch_size > 0 && options.workers > 0 && options.num_groups > 0 &&
                 options.group >= 0 && options.group < options.num_groups,
             "bad sampler options");
  batches_per_epoch_ = static_cast<int64_t>(epoch(0).size());
}

std::vector<int64_t> Sampler::permutation(int64_t epoch) const {
  const int64_t n = num_samples();
  if (!options_.shuffle) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), int64_t{0});
    return order;
  }
  const uint32_t seed_epoch = options_.reseed_every_epoch ? static_cast<uint32_t>(epoch) : 0;
  Pcg64 generator(derive_seed(options_.seed, SeedContext::kDataLoader, {{seed_epoch}}));
  generator.next_double();  // Anemoi draws and discards one number
  if (!options_.reseed_every_epoch) {
    for (int64_t earlier = 0; earlier < epoch; ++earlier)
      generator.permutation(n);
  }
  return generator.permutation(n);
}

std::vector<std::vector<int64_t>> Sampler::epoch(int64_t epoch) const {
  const std::vector<int64_t> order = permutation(epoch);
  const int64_t share = num_samples() / options_.num_groups;
  const int64_t start = share * options_.group;
  const std::vector<int64_t> parts = balanced_offsets(share, options_.workers);

  std::vector<std::vector<int64_t>> batches;
  for (int64_t round = 0;; ++round) {  // the round-th batch of every worker, in turn
    const size_t before = batches.size();
    for (size_t w = 0; w + 1 < parts.size(); ++w) {
      const int64_t begin = parts[w] + round * options_.batch_size;
      const int64_t end = std::min(begin + options_.batch_size, parts[w + 1]);
      if (begin >= end) continue;
      std::vector<int64_t>& batch = batches.emplace_back();
      for (int64_t i = begin; i < end; ++i) {
        const int64_t picked = order[static_cast<size_t>(start + i)];
        batch.push_back(anchors_[static_cast<size_t>(picked)]);
      }
    }
    if (batches.size() == before) break;
  }
  return batches;
}

}  // namespace aifs::data
