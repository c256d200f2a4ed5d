// SPDX-License-Identifier: Apache-2.0
// Layers whose channels are sliced over a few ranks (tensor parallelism). All these ranks work on
// the same rows. A layer's first linear gives each rank its slice of the channels, what follows
// works on slices, and the last linear sums over them, so that every rank has whole rows again.
#pragma once

#include <ATen/core/Tensor.h>

#include "parallel/communicator.h"

namespace aifs::model {

// Which part of a whole tensor each rank holds: so many places along one dimension.
struct Slice {
  parallel::Communicator* group = nullptr;  // null: the tensor is whole on every rank
  int64_t dimension = 0;
  parallel::Counts counts = {};

  // This rank's part of `whole`, a view.
  at::Tensor of(const at::Tensor& whole) const;
};

class TensorRanks {
 public:
  // None: layers are whole.
  TensorRanks() = default;
  // `group` outlives the layers; one rank alone slices nothing.
  explicit TensorRanks(parallel::Communicator& group);

  bool any() const { return group_ != nullptr; }
  // How many of n channels, in indivisible units (a head), each rank has.
  parallel::Counts counts(int64_t n, int64_t unit = 1) const;
  // Says where the own ones of n begin, and how many there are.
  struct Range {
    int64_t begin = 0, size = 0;
  };
  Range own(int64_t n, int64_t unit = 1) const;
  Slice slice(int64_t dimension, int64_t n, int64_t unit = 1) const;

  // The three ways between whole and sliced channels; the tensor itself where layers are whole.
  // What every rank has alike, before ranks do different things with it: gradients are summed.
  at::Tensor copied(const at::Tensor& whole) const;
  // The sum of what ranks have, on every rank.
  at::Tensor total(const at::Tensor& partial) const;
  // Returns that sum, of which each rank keeps its own channels: (n, rows) -> (own, rows).
  at::Tensor scattered(const at::Tensor& partial, int64_t unit = 1) const;

 private:
  parallel::Communicator* group_ = nullptr;
};

}  // namespace aifs::model
