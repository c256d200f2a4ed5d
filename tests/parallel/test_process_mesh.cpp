// SPDX-License-Identifier: Apache-2.0
#include "parallel/process_mesh.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"

using namespace aifs;
using parallel::Communicator;
using parallel::MeshSizes;

namespace {

// The ranks of a group, as ranks of the world.
std::vector<int64_t> members(Communicator& group, int64_t world_rank) {
  const at::Tensor all = group.all_gather_rows(
      at::full({1}, world_rank, at::kLong), parallel::Counts(static_cast<size_t>(group.size()), 1));
  const int64_t* data = all.const_data_ptr<int64_t>();
  return {data, data + all.numel()};
}

// Assertions of Catch2 are for one thread.
void require(bool holds) {
  if (!holds) throw Error("a group of the mesh is not as it should be");
}

}  // namespace

TEST_CASE("every direction of the mesh has its group", "[parallel]") {
  const MeshSizes sizes{.model = 3, .data = 2, .tensor = 2, .pipeline = 2};
  parallel::run_as_threads(24, [&](Communicator& world) {
    const parallel::ProcessMesh mesh(world, sizes);
    const int64_t rank = world.rank();
    const int64_t slice = rank % 2, part = rank / 2 % 3, stage = rank / 6 % 2, replica = rank / 12;
    const auto at = [](int64_t r, int64_t s, int64_t p, int64_t t) {
      return ((r * 2 + s) * 3 + p) * 2 + t;
    };
    using List = std::vector<int64_t>;
    require(members(mesh.tensor(), rank) ==
            List{at(replica, stage, part, 0), at(replica, stage, part, 1)});
    require(members(mesh.model(), rank) == List{at(replica, stage, 0, slice),
                                                at(replica, stage, 1, slice),
                                                at(replica, stage, 2, slice)});
    require(members(mesh.pipeline(), rank) ==
            List{at(replica, 0, part, slice), at(replica, 1, part, slice)});
    require(members(mesh.data(), rank) ==
            List{at(0, stage, part, slice), at(1, stage, part, slice)});
    require(members(mesh.alike(), rank).size() == 6);
    require(mesh.replica() == replica);
    require(mesh.is_main() == (rank == 0));
  });
}

TEST_CASE("sizes are completed, or a mistake", "[parallel]") {
  REQUIRE(parallel::complete_sizes({.model = 2, .tensor = 2}, 12, "parallel").data == 3);
  REQUIRE_THROWS_WITH(
      parallel::complete_sizes({.model = 2, .tensor = 2, .pipeline = 2}, 12, "parallel"),
      ContainsSubstring("model 2 x data 1 x tensor 2 x pipeline 2 = 8 ranks, but 12"));
  REQUIRE_THROWS_WITH(parallel::complete_sizes({.model = 4}, 2, "parallel"),
                      ContainsSubstring("parallel.model"));
}
