// SPDX-License-Identifier: Apache-2.0
// Which samples a training run sees, in which order: a pure function of seed, epoch and group.
//
// The order equals Anemoi's (anemoi-training 0.17, dataloader): one generator, seeded from the base
// seed, draws a new permutation of all samples every epoch; sample group g (one per model replica)
// takes the g-th equal share of it, and `workers` emulates Anemoi's reader processes, each of which
// forms its own batches, delivered in turn. workers = 1 is the plain order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aifs::data {

// Rows r such that r + offset is a stored, non-missing row for every offset; ascending.
std::vector<int64_t> usable_anchors(int64_t num_rows, std::span<const int64_t> missing_rows,
                                    std::span<const int64_t> offsets);

// Anchors that all datasets have, each given ascending. In Anemoi's order, which is that of the
// bytes in memory: from 256 anchors on the low byte counts first (0, 256, 512, 1, 257, ...). The
// plain ascending order for a single dataset.
std::vector<int64_t> common_anchors(std::span<const std::vector<int64_t>> datasets);

// n items over `parts`: the first n % parts get one more. Gives the start of every part, and n.
std::vector<int64_t> balanced_offsets(int64_t n, int64_t parts);

struct SamplerOptions {
  uint64_t seed = 42;
  bool shuffle = true;
  int64_t batch_size = 1;
  int64_t num_groups = 1;
  int64_t group = 0;
  int64_t workers = 1;
  // false: epoch k uses the (k+1)-th permutation of one generator (Anemoi's persistent workers);
  // true: the first permutation of a generator seeded with the epoch.
  bool reseed_every_epoch = false;
};

class Sampler {
 public:
  Sampler(std::vector<int64_t> anchors, const SamplerOptions& options);

  int64_t num_samples() const { return static_cast<int64_t>(anchors_.size()); }
  int64_t batches_per_epoch() const { return batches_per_epoch_; }

  // Anchors of every batch of one epoch (>= 0) for this group. Batches may be short where a
  // worker's share does not divide.
  std::vector<std::vector<int64_t>> epoch(int64_t epoch) const;

 private:
  std::vector<int64_t> permutation(int64_t epoch) const;

  std::vector<int64_t> anchors_;
  SamplerOptions options_;
  int64_t batches_per_epoch_ = 0;
};

}  // namespace aifs::data
