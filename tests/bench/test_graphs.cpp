// SPDX-License-Identifier: Apache-2.0
#include "bench/graphs.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::bench;

TEST_CASE("graphs are timed, counted and held against the reference", "[bench]") {
  const test::TemporaryFolder folder;
  const GraphBenchOptions options{
      .graphs = {"o96-o48", "o16-tri2"}, .threads = 1, .folder = folder.path()};
  std::vector<std::string> lines;
  const auto results = time_graphs(
      options, [&](const nlohmann::ordered_json& result) { lines.push_back(graph_text(result)); });
  REQUIRE(results.size() == 2);
  REQUIRE(lines.size() == 2);
  REQUIRE(fs::is_empty(folder.path()));
  for (const auto& result : results) {
    INFO(result.dump(1));
    for (const char* key :
         {"build_s", "build_cpu_s", "build_gib", "save_s", "load_s", "load_gib", "read_s"})
      REQUIRE(result[key].get<double>() > 0.0);
    REQUIRE(result["content"].get<std::string>().size() == 64);
  }
  REQUIRE(results[0]["num_nodes"] == std::vector<int64_t>{40320, 10944});
  REQUIRE(results[0]["num_edges"] == std::vector<int64_t>{51608, 0, 120960});
  REQUIRE(results[0]["within"].get<bool>());
  REQUIRE(results[1]["num_edges"][2] == 3 * 1600);
  REQUIRE_FALSE(results[1].contains("reference_edges"));
}

TEST_CASE("a graph that there is not is refused before others are timed", "[bench]") {
  const test::TemporaryFolder folder;
  for (const char* name : {"o96", "o96-tri", "o96-x5", "n7-tri2", "-tri2"}) {
    const GraphBenchOptions options{.graphs = {"o16-tri2", name}, .folder = folder.path()};
    REQUIRE_THROWS_WITH(time_graphs(options, [](const nlohmann::ordered_json&) { FAIL("timed"); }),
                        ContainsSubstring(name));
  }
}
