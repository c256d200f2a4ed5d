// SPDX-License-Identifier: Apache-2.0
#include "plan/all_reduce_cost.h"

#include <fstream>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::plan;

namespace {

// 1 us a message, 1 GB/s, no fixed time: seconds are easy to count.
constexpr double kAlpha = 1e-6, kBeta = 1e-9;
LinkOptions simple_link() {
  return {.call_us = 0.0, .latency_us = 1.0, .bandwidth_gb_s = 1.0};
}

Machine nodes_of_8() {
  Machine machine;
  machine.node = {.call_us = 0.0, .latency_us = 1.0, .bandwidth_gb_s = 100.0};
  machine.network = {.call_us = 0.0, .latency_us = 10.0, .bandwidth_gb_s = 10.0};
  return machine;
}

}  // namespace

TEST_CASE("all-reduces cost their messages and their bytes", "[plan]") {
  constexpr double kBytes = 1e6;
  const LinkOptions link = simple_link();
  REQUIRE(all_reduce_s(AllReduce::kRing, 4, kBytes, link) ==
          Approx(6 * kAlpha + 1.5 * kBytes * kBeta));
  REQUIRE(all_reduce_s(AllReduce::kTree, 4, kBytes, link) ==
          Approx(4 * kAlpha + 2.0 * kBytes * kBeta));
  REQUIRE(all_reduce_s(AllReduce::kHalvingDoubling, 4, kBytes, link) ==
          Approx(4 * kAlpha + 1.5 * kBytes * kBeta));
  // Six ranks: two fold into the others first.
  REQUIRE(all_reduce_s(AllReduce::kHalvingDoubling, 6, kBytes, link) ==
          Approx(6 * kAlpha + 3.5 * kBytes * kBeta));
  REQUIRE(all_reduce_s(AllReduce::kTree, 6, kBytes, link) ==
          Approx(6 * kAlpha + 2.0 * kBytes * kBeta));
  REQUIRE(reduce_scatter_s(4, kBytes, link) + all_gather_s(4, kBytes, link) ==
          Approx(all_reduce_s(AllReduce::kRing, 4, kBytes, link)));
  REQUIRE(exchange_s(3, kBytes, link) == Approx(3 * kAlpha + kBytes * kBeta));
  for (const auto& [algorithm, name] : EnumNames<AllReduce>::table)
    REQUIRE(all_reduce_s(algorithm, 1, kBytes, link) == 0.0);
}

TEST_CASE("the best all-reduce depends on bytes and ranks", "[plan]") {
  const Machine machine = nodes_of_8();
  // A few bytes: as few messages as possible. Many: as few bytes as possible.
  REQUIRE(best_all_reduce(8, 8.0, machine).algorithm != AllReduce::kRing);
  REQUIRE(best_all_reduce(6, 1e9, machine).algorithm == AllReduce::kRing);
  // Many bytes over many nodes: only an eighth of them leaves a node.
  const ReduceChoice far = best_all_reduce(64, 1e9, machine);
  REQUIRE(far.hierarchical);
  REQUIRE(far.seconds < 0.3 * all_reduce_s(AllReduce::kRing, false, 64, 1e9, machine));
  for (const int64_t ranks : {2, 8, 24, 1024, 4096}) {
    const ReduceChoice best = best_all_reduce(ranks, 4e6, machine);
    for (const auto& [algorithm, name] : EnumNames<AllReduce>::table)
      REQUIRE(best.seconds <= all_reduce_s(algorithm, false, ranks, 4e6, machine));
  }
}

TEST_CASE("a machine is read from a file, also one of the benchmark", "[plan]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "machine.json").string();
  std::ofstream(file) << R"({"ranks_per_node": 4, "network": {"bandwidth_gb_s": 25}})";
  const Machine machine = load_machine(file);
  REQUIRE(machine.ranks_per_node == 4);
  REQUIRE(machine.network.bandwidth_gb_s == 25.0);
  REQUIRE(machine.network.latency_us == Machine{}.network.latency_us);
  std::ofstream(file) << R"({"results": [], "machine": {"node": {"latency_us": 7}}})";
  REQUIRE(load_machine(file).node.latency_us == 7.0);
  std::ofstream(file) << R"({"node": {"bandwith_gb_s": 7}})";
  REQUIRE_THROWS_WITH(load_machine(file), ContainsSubstring("node.bandwith_gb_s"));
}
