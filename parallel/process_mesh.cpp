// SPDX-License-Identifier: Apache-2.0
#include "parallel/process_mesh.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"

namespace aifs::parallel {

MeshSizes complete_sizes(const MeshSizes& sizes, int64_t num_ranks, const std::string& path) {
  MeshSizes complete = sizes;
  if (sizes.model > num_ranks) {
    throw ConfigError(path + ".model",
                      concat("is ", sizes.model, ", but there ", num_ranks == 1 ? "is " : "are ",
                             num_ranks, num_ranks == 1 ? " rank" : " ranks"),
                      concat("start more: mpirun -n ", sizes.model, " aifs-train ..."));
  }
  const int64_t per_replica = sizes.model * sizes.tensor * sizes.pipeline;
  if (sizes.data == 0) complete.data = std::max<int64_t>(1, num_ranks / per_replica);
  if (per_replica * complete.data != num_ranks) {
    std::string product = concat("model ", sizes.model, " x data ", complete.data);
    if (sizes.tensor > 1) product += concat(" x tensor ", sizes.tensor);
    if (sizes.pipeline > 1) product += concat(" x pipeline ", sizes.pipeline);
    throw ConfigError(path,
                      concat(product, " = ", per_replica * complete.data, " ranks, but ", num_ranks,
                             " were started"),
                      "the sizes must multiply to the number of ranks");
  }
  return complete;
}

ProcessMesh::ProcessMesh()
    : own_world_(make_single_communicator()),
      sizes_{.model = 1, .data = 1},
      world_(own_world_.get()),
      model_(make_single_communicator()),
      data_(make_single_communicator()),
      tensor_(make_single_communicator()),
      pipeline_(make_single_communicator()),
      alike_(make_single_communicator()),
      stage_links_(std::make_unique<StageLinks>()) {}

ProcessMesh::ProcessMesh(Communicator& world, const MeshSizes& sizes)
    : sizes_(sizes), world_(&world) {
  const int64_t all = sizes.model * sizes.data * sizes.tensor * sizes.pipeline;
  AIFS_CHECK(all == world.size(), "a mesh of ", all, " ranks for ", world.size());
  const int64_t rank = world.rank();
  const int64_t slice = rank % sizes.tensor;
  const int64_t part = rank / sizes.tensor % sizes.model;
  const int64_t stage = rank / (sizes.tensor * sizes.model) % sizes.pipeline;
  // The group of the ranks with which this one shares every place but the given one.
  const auto along = [&](int64_t stride, int64_t place) {
    return world.split(static_cast<int>(rank - place * stride));
  };
  tensor_ = along(1, slice);
  model_ = along(sizes.tensor, part);
  pipeline_ = along(sizes.tensor * sizes.model, stage);
  const int64_t replica_size = sizes.tensor * sizes.model * sizes.pipeline;
  data_ = along(replica_size, rank / replica_size);
  alike_ = world.split(static_cast<int>(stage * sizes.tensor + slice));
  stage_links_ = std::make_unique<StageLinks>(*pipeline_);
}

std::string ProcessMesh::place() const {
  std::string text = concat("replica ", replica(), ", part ", model_->rank());
  if (sizes_.pipeline > 1) text += concat(", stage ", pipeline_->rank());
  if (sizes_.tensor > 1) text += concat(", slice ", tensor_->rank());
  return text;
}

std::vector<double> sum_over(Communicator& group, std::vector<double> values) {
  if (group.size() == 1) return values;
  const at::Tensor sum = at::tensor(values, at::kDouble);
  group.all_reduce(sum, Reduction::kSum);
  const double* data = sum.const_data_ptr<double>();
  return {data, data + sum.numel()};
}

bool on_any_rank(Communicator& group, bool here) {
  return sum_over(group, {static_cast<double>(here)})[0] > 0.0;
}

}  // namespace aifs::parallel
