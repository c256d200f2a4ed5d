// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_file.h"

#include <fstream>

#include "core/check.h"
#include "graph/builder.h"
#include "graph/edges/neighbour_kinds.h"
#include "graph/nodes/tri_kinds.h"
#include "graph/stored_graph.h"
#include "tests/support/catch.h"
#include "tests/support/missing_operations.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

Graph built_graph() {
  GraphOptions options;
  options.grid = "o8";
  options.hidden.kind.set(TriKind(2));
  return build_graph(options, {});
}

// The position of a run of bytes in a file; it must be there.
size_t find_bytes(const std::string& content, const void* bytes, size_t count) {
  const size_t at = content.find(std::string(static_cast<const char*>(bytes), count));
  REQUIRE(at != std::string::npos);
  return at;
}

void write_all(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

TEST_CASE("a stored graph reads back to the last bit, and nothing is left beside it",
          "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "graph.nc";
  const Graph graph = built_graph();
  save_graph(path, graph, "hash of options");
  const StoredGraph stored = load_graph(path);
  REQUIRE(stored.options_hash == "hash of options");
  REQUIRE(stored.graph.content_hash() == graph.content_hash());
  const EdgeSet &ours = graph.edges("data", "hidden"),
                &theirs = stored.graph.edges("data", "hidden");
  REQUIRE(ours.source_index == theirs.source_index);
  REQUIRE(theirs.attributes.at("edge_dirs").width == 2);
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  save_graph(path, graph, "again");  // over an existing file
  REQUIRE(load_graph(path).options_hash == "again");
}

TEST_CASE("empty sets and their order survive", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  Graph graph;
  graph.node_sets = {{"z", {0.5F}, {0.25F}, {}}, {"a", {}, {}, {{"w", {1, {}}}}}};
  graph.edge_sets = {{"z", "z", {}, {}, {{"edge_length", {1, {}}}}}, {"a", "z", {}, {}, {}}};
  save_graph(folder.path() / "g.nc", graph, "");
  const Graph loaded = load_graph(folder.path() / "g.nc").graph;
  REQUIRE(loaded.content_hash() == graph.content_hash());
  REQUIRE(loaded.node_sets[0].name == "z");
  REQUIRE(loaded.edge_sets[1].source == "a");
}

TEST_CASE("a changed byte is noticed", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "graph.nc";
  const Graph graph = built_graph();
  save_graph(path, graph, "");
  std::string content = read_file(path);
  const auto& index = graph.edges("hidden", "data").source_index;
  content[find_bytes(content, index.data(), 64) + 12] ^= 1;
  write_all(path, content);
  REQUIRE_THROWS_AS(load_graph(path), DataError);
  REQUIRE_THROWS_WITH(load_graph(path), ContainsSubstring("graph.nc' is damaged"));
}

TEST_CASE("ranks read slices of a file, which are those of the graph", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "graph.nc";
  Graph graph = built_graph();
  graph.edge_sets.push_back({"data", "data", {}, {}, {{"none", {2, {}}}}});  // no edge at all
  save_graph(path, graph, "options");
  REQUIRE(stored_content_hash(path) == graph.content_hash());
  for (const int64_t size : {1, 2, 3, 5}) {
    for (int64_t rank = 0; rank < size; ++rank) {
      const GraphSlice slice = load_slice(path, rank, size), wanted = slice_of(graph, rank, size);
      REQUIRE(slice.graph.content_hash() == wanted.graph.content_hash());
      REQUIRE(slice.ranges.size() == wanted.ranges.size());
      for (size_t i = 0; i < wanted.ranges.size(); ++i) {
        REQUIRE(slice.ranges[i].begin == wanted.ranges[i].begin);
        REQUIRE(slice.ranges[i].end == wanted.ranges[i].end);
        REQUIRE(slice.ranges[i].total == wanted.ranges[i].total);
      }
    }
  }
  REQUIRE(stored_content_hash(folder.path() / "none.nc").empty());
  REQUIRE_THROWS_WITH(load_slice(folder.path() / "none.nc", 0, 2),
                      ContainsSubstring("does not exist"));
}

TEST_CASE("an outline has the nodes, and the edges are held against the hash", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "graph.nc";
  const Graph graph = built_graph();
  save_graph(path, graph, "options", "a test");
  const StoredGraph outline = load_outline(path);
  REQUIRE(outline.options_hash == "options");
  REQUIRE(outline.origin == "a test");
  REQUIRE(outline.content_hash == graph.content_hash());
  REQUIRE(outline.graph.nodes("data").lat_rad == graph.nodes("data").lat_rad);
  REQUIRE(outline.graph.nodes("data").attributes.at("area_weight").values ==
          graph.nodes("data").attributes.at("area_weight").values);
  const EdgeSet& edges = outline.graph.edges("hidden", "data");
  REQUIRE(edges.num_edges() == 0);
  REQUIRE(edges.attributes.at("edge_dirs").width == 2);
  REQUIRE(edges.attributes.at("edge_dirs").values.empty());
  std::string content = read_file(path);
  const std::vector<float>& values =
      graph.edges("hidden", "data").attributes.at("edge_dirs").values;
  content[find_bytes(content, values.data(), 64) + 12] ^= 1;
  write_all(path, content);
  REQUIRE_THROWS_WITH(load_outline(path), ContainsSubstring("graph.nc' is damaged"));
}

TEST_CASE("a truncated file, another file and no file are told by name", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "graph.nc";
  save_graph(path, built_graph(), "");
  const std::string content = read_file(path);
  for (const size_t size : {content.size() / 2, content.size() - 100, size_t{10}, size_t{0}}) {
    write_all(path, content.substr(0, size));
    REQUIRE_THROWS_AS(load_graph(path), DataError);
    REQUIRE_THROWS_WITH(load_graph(path), ContainsSubstring("graph.nc"));
  }
  REQUIRE_THROWS_WITH(load_graph(folder.path() / "none.nc"), ContainsSubstring("does not exist"));
}

TEST_CASE("a file that cannot be written is an error, and leaves nothing", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "taken" / "graph.nc";
  fs::create_directories(path / "by a folder");
  REQUIRE_THROWS(save_graph(path, built_graph(), ""));
  REQUIRE(std::distance(fs::directory_iterator(path.parent_path()), {}) == 1);
  REQUIRE_THROWS(save_graph("/proc/graph.nc", built_graph(), ""));
}

TEST_CASE("graph files need no locks, no flush and no renaming", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "graph.nc";
  const Graph graph = built_graph();
  const auto missing = GENERATE(
      aifs::test::MissingOperations{.lock = ENOLCK}, aifs::test::MissingOperations{.lock = ENOSYS},
      aifs::test::MissingOperations{.flush_file = EINVAL, .lock = EOPNOTSUPP},
      aifs::test::MissingOperations{.rename_file = ENOSYS});
  const aifs::test::WithoutOperations without(missing);
  for (const char* options : {"first", "second"}) {
    save_graph(path, graph, options);
    const StoredGraph stored = load_graph(path);
    REQUIRE(stored.options_hash == options);
    REQUIRE(stored.graph.content_hash() == graph.content_hash());
  }
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a file that cannot be opened is not said to be damaged", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const auto reason = [](const fs::path& path) {
    try {
      load_graph(path);
    } catch (const DataError& error) {
      return std::string(error.what()) + "; " + error.hint();
    }
    return std::string();
  };
  REQUIRE_THAT(reason(folder.path()), ContainsSubstring("is a folder"));
  write_all(folder.path() / "text.nc", "no graph");
  REQUIRE_THAT(reason(folder.path() / "text.nc"),
               ContainsSubstring("text.nc': cannot be opened: it is not a netCDF file; "
                                 "delete the file to have the graph built again"));
  if (::geteuid() == 0) return;  // may read everything
  fs::permissions(folder.path() / "text.nc", fs::perms::none);
  REQUIRE_THAT(reason(folder.path() / "text.nc"), ContainsSubstring("Permission denied; "));
}

TEST_CASE("a folder that takes no graph file is found before the graph is built", "[graph_file]") {
  GraphOptions options;
  options.grid = "o8";
  KnnKind too_many;  // building would fail first
  too_many.num_neighbours = 100000;
  options.decoder.kind.set(too_many);
  options.file = "/proc/graph.nc";
  REQUIRE_THROWS_WITH(load_or_build_graph(options, {}), ContainsSubstring("'/proc'"));
}

TEST_CASE("the folder of a graph file is made", "[graph_file]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path path = folder.path() / "not" / "yet" / "graph.nc";
  save_graph(path, built_graph(), "");
  REQUIRE_NOTHROW(load_graph(path));
}
