// SPDX-License-Identifier: Apache-2.0
// How all ranks divide the work: replicas of the model, each of them a group of consecutive ranks
// that share one sample. Rank = replica * model + position in the model group.
#pragma once

#include <memory>
#include <string>

#include "core/config.h"
#include "parallel/communicator.h"

namespace aifs::parallel {

struct MeshSizes {
  int64_t model = 1;  // ranks that share one sample
  int64_t data = 0;   // replicas; 0: as many as there are ranks for
};

// Fills in what is derived. Throws ConfigError (paths under `path`) if the sizes do not multiply to
// the number of ranks.
MeshSizes complete_sizes(const MeshSizes& sizes, int64_t num_ranks, const std::string& path);

class ProcessMesh {
 public:
  // One rank alone.
  ProcessMesh();
  // Collective over `world`, which outlives the mesh; sizes are complete.
  ProcessMesh(Communicator& world, const MeshSizes& sizes);

  const MeshSizes& sizes() const { return sizes_; }
  Communicator& world() const { return *world_; }
  // The ranks that share this rank's sample.
  Communicator& model() const { return *model_; }
  // The ranks of the other replicas that own the same nodes.
  Communicator& data() const { return *data_; }
  int64_t replica() const { return data_->rank(); }
  // The rank that writes logs, metrics and checkpoints.
  bool is_main() const { return world_->rank() == 0; }
  // Gradients of this rank's part of a sample to those of all, in place: the sum over a model group
  // is the gradient of its sample, replicas are averaged. Collective.
  void reduce_gradients(const at::Tensor& flat) const;

 private:
  std::unique_ptr<Communicator> own_world_;  // of one rank alone
  MeshSizes sizes_;
  Communicator* world_;
  std::unique_ptr<Communicator> model_, data_;
};

// Sums over a group of a few numbers.
std::vector<double> sum_over(Communicator& group, std::vector<double> values);

}  // namespace aifs::parallel
