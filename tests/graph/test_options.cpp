// SPDX-License-Identifier: Apache-2.0
#include "graph/options.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "graph/edges/mesh_kinds.h"
#include "graph/edges/neighbour_kinds.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

// Parses a section "graph" from JSON text.
GraphOptions parsed(const std::string& text) {
  GraphOptions options;
  config::read(options, config::parse_json(text, "test"), "graph", {});
  return options;
}

}  // namespace

TEST_CASE("levels default to 1 ... refinement, or from 0 if asked for", "[options]") {
  MultiScaleKind options;
  REQUIRE(options.levels_of(3) == std::vector<int64_t>{1, 2, 3});
  REQUIRE(options.levels_of(0) == std::vector<int64_t>{0});
  options.include_level_0 = true;
  REQUIRE(options.levels_of(2) == std::vector<int64_t>{0, 1, 2});
  options.levels = {2, 1};
  REQUIRE(options.levels_of(5) == std::vector<int64_t>{2, 1});
}

TEST_CASE("options that make no sense name their path", "[options]") {
  REQUIRE_THROWS_WITH(parsed(R"({"grid": "x96"})"), ContainsSubstring("'graph.grid'"));
  REQUIRE_THROWS_WITH(parsed(R"({"hidden": {"refinement": 2}, "processor": {"levels": [3]}})"),
                      ContainsSubstring("'graph.processor.levels': level 3 is finer"));
  REQUIRE_THROWS_WITH(parsed(R"({"encoder": {"kind": "radius"}})"),
                      ContainsSubstring("graph.encoder.kind"));
  REQUIRE_THROWS_WITH(parsed(R"({"hidden": {"refinement": 12}})"),
                      ContainsSubstring("graph.hidden.refinement"));
}

TEST_CASE("names that a graph file cannot have are refused before building", "[options]") {
  const auto graph = [](const std::string& set, const std::string& of_nodes,
                        const std::string& of_edges) {
    return concat(R"({"nodes": {")", set, R"(": {"kind": "tri", "attributes": {")", of_nodes,
                  R"(": {"kind": "uniform"}}}}, "edges": [{"source": "data", "target": "m",
                  "kinds": [{"kind": "knn"}], "attributes": {")",
                  of_edges, R"(": {"kind": "length"}}}]})");
  };
  REQUIRE_NOTHROW(parsed(graph("m-1.a", "_weight", "len.2")));
  for (const char* name : {"a/b", "", "a_to_b", "-a", "a b"}) {
    REQUIRE_THROWS_WITH(
        parsed(graph(name, "w", "e")),
        ContainsSubstring(concat("'graph.nodes.", name, "': '", name, "' cannot be the name")));
  }
  for (const char* name : {"a/b", "", "latitude", "target_index"}) {
    REQUIRE_THROWS_WITH(parsed(graph("m", name, "e")),
                        ContainsSubstring(concat("'graph.nodes.m.attributes.", name, "'")));
    REQUIRE_THROWS_WITH(parsed(graph("m", "w", name)),
                        ContainsSubstring(concat("'graph.edges.0.attributes.", name, "'")));
  }
  REQUIRE_THROWS_WITH(
      parsed(R"({"post_process": [{"kind": "remove_unconnected", "save_as": "longitude"}]})"),
      ContainsSubstring("'graph.post_process.0.save_as'"));
}

TEST_CASE("the hash of options knows what changes the graph", "[options]") {
  const GraphOptions options = parsed(R"({"grid": "o8", "hidden": {"refinement": 1}})");
  GraphOptions other = options;
  other.threads = 5;
  other.file = "somewhere.nc";
  REQUIRE(options_hash(other) == options_hash(options));
  KnnKind four;
  four.num_neighbours = 4;
  other.decoder.kind.set(four);
  REQUIRE(options_hash(other) != options_hash(options));
  // Stored graphs have hashes of all values, also of those that their kinds of edges do not read:
  // the SHA-256 of the compact JSON of the defaults, from another program.
  REQUIRE(options_hash(GraphOptions()) ==
          "4d8c8999cddba615b7dc2841c1d7f0c45b8d7d2f69924a0ba92f4163f01f9f67");
}

TEST_CASE("options of other kinds of edges are refused", "[options]") {
  REQUIRE_THROWS_WITH(parsed(R"({"encoder": {"num_neighbours": 3}})"),
                      ContainsSubstring("'graph.encoder.num_neighbours': is an option of knn"));
  REQUIRE_THROWS_WITH(parsed(R"({"decoder": {"cutoff_factor": 1}})"),
                      ContainsSubstring("'graph.decoder.cutoff_factor': is an option of cutoff"));
  const GraphOptions options = parsed(R"({"decoder": {"kind": "cutoff", "cutoff_factor": 1}})");
  REQUIRE(options.decoder.kind.as<CutOffKind>()->cutoff_factor == 1.0);
}

TEST_CASE("a given graph comes from a file, and no other key says what is in it", "[options]") {
  REQUIRE(parsed(R"({"given": true, "file": "g.nc", "grid": "o8", "threads": 2})").given);
  REQUIRE_THROWS_WITH(parsed(R"({"given": true})"), ContainsSubstring("'graph.file': names no"));
  REQUIRE_THROWS_WITH(
      parsed(R"({"given": true, "file": "g.nc", "hidden": {"kind": "tri", "refinement": 3}})"),
      ContainsSubstring("'graph.hidden': is not for a given graph"));
  REQUIRE_THROWS_WITH(
      parsed(R"({"given": true, "file": "g.nc", "post_process": [{"kind": "sort_edges"}]})"),
      ContainsSubstring("graph.post_process"));
  REQUIRE_FALSE(parsed(R"({"given": true, "file": "g.nc"})").makes_nodes("hidden"));
}

TEST_CASE("files of graphs with their nodes and edges listed keep their hash", "[options]") {
  // Of the text that files were named by before there were given graphs.
  const GraphOptions options = parsed(
      R"({"grid": "o8", "nodes": {"hidden": {"kind": "tri", "refinement": 1}},
          "edges": [{"source": "data", "target": "hidden", "kinds": [{"kind": "knn"}]}]})");
  REQUIRE(options_hash(options).substr(0, 12) == "68d5c8fd4832");
}
