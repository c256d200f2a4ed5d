// SPDX-License-Identifier: Apache-2.0
// How all ranks divide the work: replicas of the model, each of them stages of a pipeline, each of
// those a group that shares one sample, each member of it a few ranks that split its layers.
// Rank = ((replica * pipeline + stage) * model + part) * tensor + slice: ranks that exchange most
// are neighbours, and so on one host.
#pragma once

#include <memory>
#include <string>

#include "core/config.h"
#include "parallel/communicator.h"
#include "parallel/stage_links.h"

namespace aifs::parallel {

struct MeshSizes {
  int64_t model = 1;     // ranks that share one sample
  int64_t data = 0;      // replicas; 0: as many as there are ranks for
  int64_t tensor = 1;    // ranks that split each layer
  int64_t pipeline = 1;  // stages, ranges of layers
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
  // The ranks that hold slices of the same layers and work on the same nodes.
  Communicator& tensor() const { return *tensor_; }
  // The ranks of the other stages that work on the same nodes; stages in rank order.
  Communicator& pipeline() const { return *pipeline_; }
  // Returns what they give each other.
  StageLinks& stage_links() const { return *stage_links_; }
  // The ranks that hold the same parameters: their gradients are summed.
  Communicator& alike() const { return *alike_; }
  int64_t replica() const { return data_->rank(); }
  // "replica 0, part 1" and, where there are several, ", stage 0" and ", slice 0".
  std::string place() const;
  // The rank that writes logs, metrics and checkpoints.
  bool is_main() const { return world_->rank() == 0; }

 private:
  std::unique_ptr<Communicator> own_world_;  // of one rank alone
  MeshSizes sizes_;
  Communicator* world_;
  std::unique_ptr<Communicator> model_, data_, tensor_, pipeline_, alike_;
  std::unique_ptr<StageLinks> stage_links_;
};

// Sums over a group of a few numbers.
std::vector<double> sum_over(Communicator& group, std::vector<double> values);
// True if something holds on any rank of a group; the same on all of them. Collective.
bool on_any_rank(Communicator& group, bool here);

}  // namespace aifs::parallel
