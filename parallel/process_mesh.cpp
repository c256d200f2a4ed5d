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

ProcessMesh::ProcessMesh(Communicator& world, const MeshSizes& sizes)
    : sizes_(sizes), world_(&world) {
  AIFS_CHECK(sizes.model * sizes.data == world.size(), "a mesh of ", sizes.model, " x ", sizes.data,
             " for ", world.size(), " ranks");
  const auto model = static_cast<int>(sizes.model);
  model_ = world.split(world.rank() / model);
  data_ = world.split(world.rank() % model);
}

std::vector<double> sum_over(Communicator& group, std::vector<double> values) {
  if (group.size() == 1) return values;
  const at::Tensor sum = at::tensor(values, at::kDouble);
  group.all_reduce(sum, Reduction::kSum);
  const double* data = sum.const_data_ptr<double>();
  return {data, data + sum.numel()};
}

}  // namespace aifs::parallel
