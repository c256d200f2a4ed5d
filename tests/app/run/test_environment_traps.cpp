// SPDX-License-Identifier: Apache-2.0
#include "app/run/environment_traps.h"

#include <map>

#include "core/file_io.h"
#include "core/join.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using app::environment_traps;
using app::Surroundings;

namespace {

// Every trap as a line, on a system whose files are below `root`.
std::string traps(Surroundings surroundings, const std::map<std::string, std::string>& variables,
                  const fs::path& root) {
  surroundings.root = root;
  surroundings.variable = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return join(environment_traps(surroundings), "\n");
}

}  // namespace

TEST_CASE("variables that slow a run on GPUs down are named", "[environment_traps]") {
  const test::TemporaryFolder root;
  const std::map<std::string, std::string> set{
      {"CUDA_LAUNCH_BLOCKING", "1"}, {"NCCL_DEBUG", "INFO"}, {"NCCL_IB_DISABLE", "1"}};
  CHECK(traps({}, set, root.path()).empty());  // on CPUs they mean nothing
  const std::string one = traps({.on_gpu = true}, set, root.path());
  CHECK_THAT(one, ContainsSubstring("CUDA_LAUNCH_BLOCKING=1 is set: the host waits") &&
                      ContainsSubstring("NCCL_DEBUG=INFO is set") &&
                      !ContainsSubstring("NCCL_IB_DISABLE"));
  CHECK(
      traps({.on_gpu = true}, {{"CUDA_LAUNCH_BLOCKING", "0"}, {"NCCL_DEBUG", "WARN"}}, root.path())
          .empty());
}

TEST_CASE("hosts without InfiniBand are named where there are several", "[environment_traps]") {
  const test::TemporaryFolder root;
  CHECK(traps({.on_gpu = true}, {}, root.path()).empty());
  const Surroundings two{.on_gpu = true, .num_hosts = 2};
  CHECK_THAT(traps(two, {{"NCCL_IB_DISABLE", "1"}}, root.path()),
             ContainsSubstring("2 hosts, and this one has no InfiniBand adapter") &&
                 ContainsSubstring("NCCL_IB_DISABLE=1"));
  make_directories(root.path() / "sys/class/infiniband/mlx5_0");
  CHECK(traps(two, {}, root.path()).empty());
}

TEST_CASE("divided GPUs and power limits are named", "[environment_traps]") {
  const test::TemporaryFolder root;
  GpuState whole, part;
  whole.power_limit_w = whole.default_power_limit_w = 700.0;
  part.address = "0000:2b:00.0";
  part.is_divided = true;
  part.power_limit_w = 500.0;
  part.default_power_limit_w = 700.0;
  CHECK(traps({.on_gpu = true, .gpus = {whole}}, {}, root.path()).empty());
  CHECK_THAT(traps({.on_gpu = true, .gpus = {whole, part}}, {}, root.path()),
             ContainsSubstring("GPU 0000:2b:00.0 is divided (MIG)") &&
                 ContainsSubstring("is limited to 500 W of 700 W"));
}
