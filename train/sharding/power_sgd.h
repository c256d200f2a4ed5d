// SPDX-License-Identifier: Apache-2.0
// PowerSGD (Vogels et al. 2019, algorithm 1): the sum over ranks of a gradient matrix M (n x m) is
// approximated by P Q^T of rank r, found by one step of subspace iteration from the Q of the step
// before. What travels are P (n x r) and Q (m x r). Tensors that this would not make smaller travel
// as they are. What a rank's own matrix loses is added to its next one.
#pragma once

#include "parallel/communicator.h"
#include "train/sharding/shard_layout.h"
#include "train/sharding/sharding.h"

namespace aifs::train {

class PowerSgd {
 public:
  // Takes the same seed on all ranks.
  PowerSgd(const model::ParameterSet& parameters, const ReductionOptions& options, uint64_t seed);

  // Replaces the gradients of a bucket, (size), by their approximate sum over the group;
  // collective.
  void reduce(const ShardBucket& bucket, const at::Tensor& gradients,
              parallel::Communicator& group);
  // Starts anew, without errors of earlier steps.
  void forget() { plans_.clear(); }
  // Elements that a rank sends for a bucket instead of all.
  int64_t elements_sent(const ShardBucket& bucket) const;

 private:
  struct Matrix {
    int64_t begin = 0;  // in the bucket
    int64_t rows = 0, columns = 0, rank = 0;
    at::Tensor q = {}, error = {};
  };
  // The matrices of a bucket that are worth it, and the rest of it as (begin, size).
  struct Plan {
    std::vector<Matrix> matrices;
    std::vector<std::pair<int64_t, int64_t>> rest;
  };
  Plan plan_of(const ShardBucket& bucket) const;

  const model::ParameterSet& parameters_;
  ReductionOptions options_;
  uint64_t seed_;
  std::map<int64_t, Plan> plans_;  // by the begin of the bucket
};

}  // namespace aifs::train
