// SPDX-License-Identifier: Apache-2.0
// Gradients of this rank's part of the work to those of all, bucket by bucket, each as soon as it
// is complete while the backward pass goes on (Li et al. 2020, PyTorch Distributed).
//
// The first backward pass of a kind tells in which order buckets become complete and how often each
// parameter gets a gradient in a pass (pieces that are recomputed give several); nothing overlaps
// in it. In later ones a bucket is reduced when it is complete and all before it in the main rank's
// order have been.
#pragma once

#include "train/optim/optimizer.h"
#include "train/sharding/parameter_shards.h"
#include "train/sharding/power_sgd.h"

namespace aifs::train {

class GradientReducer {
 public:
  // Parameters that need no gradients have been frozen by now. All outlive it. May move the flat
  // gradients: whoever keeps them takes them after this.
  GradientReducer(model::ParameterSet& parameters, ParameterShards& shards,
                  const ReductionOptions& options, const parallel::ProcessMesh& mesh,
                  uint64_t seed);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Gradients of a new step, from zero. `step` counts from 0.
  void start_step(int64_t step);
  // Around a backward pass. Passes of one kind are alike; `last` is said of the last one of a step.
  void start_pass(int64_t kind, bool last);
  // Collective over ranks of the same parameters. Throws Error naming parameters that got no
  // gradient, in the first pass of a kind.
  void end_pass();
  // In place of end_pass() on a rank whose backward pass has thrown: takes part in what the others
  // reduce, and the gradients of all mean nothing. Collective as end_pass().
  void abandon_pass();

  // Sums over a sample, means over replicas, of the own part of a bucket; whole after the last
  // pass.
  at::Tensor own_gradients(const ShardBucket& bucket) const;
  // Returns the own gradients of all buckets, in as few tensors as there are.
  OwnGradients own_gradients() const;

  // Returns what Communicator::background_memory() holds for the gradients: no allocator counts it.
  int64_t background_bytes() const { return background_bytes_; }

  // Drops what compression remembers of earlier gradients: they were not finite, or scaled
  // otherwise.
  void forget() { power_sgd_.forget(); }

  // "12 buckets, 292.1 MB a step as fp32": what a rank gives to the reductions of a step, or of
  // each batch where gradients are shared out.
  std::string describe() const;

 private:
  class Hook;
  // Describes what the first pass of a kind has taught.
  struct Plan {
    std::vector<int64_t> arrivals;  // gradients per bucket
    std::vector<size_t> order;
  };
  bool reduces() const { return mesh_.alike().size() > 1 || keeps_parts(); }
  // Gradients of other ranks' parts are not kept.
  bool keeps_parts() const { return shards_.states() >= Sharding::kGradients; }
  void prepare(size_t parameter);
  void arrived(size_t parameter);
  void reduce_complete();
  void reduce(size_t bucket);
  bool sums_in_background() const;
  void move_gradients();
  void sum_over_copies(const at::Tensor& gradients, double factor);
  at::Tensor bucket_gradients(size_t bucket) const;
  Plan learn();
  void check_all_used() const;
  bool is_trained_whole(int64_t unit) const;

  model::ParameterSet& parameters_;
  ParameterShards& shards_;
  ReductionOptions options_;
  const parallel::ProcessMesh& mesh_;
  PowerSgd power_sgd_;
  parallel::SideStream side_;
  std::vector<std::pair<size_t, unsigned>> prepare_hooks_;  // parameter, number of its hook
  int64_t background_bytes_ = 0;
  at::Tensor local_gradients_;       // keeps_parts(): own parts of all buckets
  std::vector<at::Tensor> passing_;  // keeps_parts(): per bucket, while it gets gradients
  std::map<int64_t, Plan> plans_;
  // State of the pass at hand.
  int64_t step_ = 0, kind_ = 0;
  bool active_ = false;
  const Plan* plan_ = nullptr;
  std::vector<int64_t> arrivals_of_parameter_, arrivals_of_bucket_;
  std::vector<size_t> finished_;  // buckets by the time of their last gradient
  size_t num_reduced_ = 0;        // of the plan's order
};

}  // namespace aifs::train
