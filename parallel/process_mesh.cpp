// SPDX-License-Identifier: Apache-2.0
#include "parallel/process_mesh.h"

#include <ATen/ATen.h>

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
  if (sizes.data == 0) complete.data = num_ranks / sizes.model;
  if (complete.model * complete.data != num_ranks) {
    throw ConfigError(
        path,
        concat("model ", complete.model, " x data ", complete.data, " = ",
               complete.model * complete.data, " ranks, but ", num_ranks, " were started"),
        "the sizes must multiply to the number of ranks");
  }
  return complete;
}

ProcessMesh::ProcessMesh()
    : own_world_(make_single_communicator()),
      sizes_{1, 1},
      world_(own_world_.get()),
      model_(make_single_communicator()),
      data_(make_single_communicator()) {}

ProcessMesh::ProcessMesh(Communicator& world, const MeshSizes& sizes)
    : sizes_(sizes), world_(&world) {
  AIFS_CHECK(sizes.model * sizes.data == world.size(), "a mesh of ", sizes.model, " x ", sizes.data,
             " for ", world.size(), " ranks");
  const auto model = static_cast<int>(sizes.model);
  model_ = world.split(world.rank() / model);
  data_ = world.split(world.rank() % model);
}

void ProcessMesh::reduce_gradients(const at::Tensor& flat) const {
  if (world_->size() == 1) return;
  world_->all_reduce(flat, Reduction::kSum);
  if (sizes_.data > 1) flat.mul_(1.0 / static_cast<double>(sizes_.data));
}

std::vector<double> sum_over(Communicator& group, std::vector<double> values) {
  if (group.size() == 1) return values;
  const at::Tensor sum = at::tensor(values, at::kDouble);
  group.all_reduce(sum, Reduction::kSum);
  const double* data = sum.const_data_ptr<double>();
  return {data, data + sum.numel()};
}

}  // namespace aifs::parallel
