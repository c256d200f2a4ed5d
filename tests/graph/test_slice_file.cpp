// SPDX-License-Identifier: Apache-2.0
#include "graph/slice_file.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "graph/builder.h"
#include "graph/graph_file.h"
#include "tests/graph/graph_options.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/thread_peers.h"

using namespace aifs;
using namespace aifs::graph;
using test::run_peers;

namespace {

Graph graph_with_empty_set() {
  Graph graph = build_graph(
      samples::parsed(R"({"grid": "o16", "hidden": {"kind": "tri", "refinement": 2}})"), {});
  graph.edge_sets.push_back({"data", "data", {}, {}, {{"none", {2, {}}}}});
  return graph;
}

}  // namespace

TEST_CASE("a file that ranks write together is that of the whole", "[slice_file]") {
  const test::TemporaryFolder folder;
  const Graph graph = graph_with_empty_set();
  const fs::path whole = folder.path() / "whole.nc";
  const std::string hash = save_graph(whole, graph, "options");
  for (const int64_t ranks : {1, 2, 3, 7}) {
    const fs::path path = folder.path() / concat(ranks, ".nc");
    run_peers(ranks, [&](Peers& peers) {
      const GraphSlice slice = slice_of(graph, peers.rank(), ranks);
      AIFS_CHECK(save_slices(path, slice, "options", peers) == hash, "another hash");
    });
    const StoredGraph stored = load_graph(path);
    REQUIRE(stored.options_hash == "options");
    REQUIRE(stored.content_hash == hash);
    REQUIRE(stored.graph.content_hash() == hash);
  }
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), {}) == 5);
}

TEST_CASE("a file that cannot be written is an error of the first rank, and none waits",
          "[slice_file]") {
  const test::TemporaryFolder folder;
  const Graph graph = graph_with_empty_set();
  const fs::path folder_in_place = folder.path() / "taken.nc" / "below";
  fs::create_directories(folder_in_place);
  for (const fs::path& path : {folder.path() / "taken.nc", fs::path("/proc/none/graph.nc")}) {
    std::atomic<int> failed{0}, ended{0};
    run_peers(3, [&](Peers& peers) {
      try {
        const std::string hash =
            save_slices(path, slice_of(graph, peers.rank(), 3), "options", peers);
        AIFS_CHECK(hash.empty(), "a hash of a file that there is not");
        ++ended;
      } catch (const Error&) {
        AIFS_CHECK(peers.rank() == 0, "an error of another rank");
        ++failed;
      }
    });
    REQUIRE(failed == 1);
    REQUIRE(ended == 2);
  }
}
