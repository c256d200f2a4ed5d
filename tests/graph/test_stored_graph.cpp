// SPDX-License-Identifier: Apache-2.0
#include "graph/stored_graph.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "core/check.h"
#include "core/file_io.h"
#include "graph/edges/neighbour_kinds.h"
#include "graph/graph_file.h"
#include "graph/nodes/file_kinds.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/tri_kinds.h"
#include "tests/graph/graph_options.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs::graph;
using samples::options_of;
using samples::parsed;
namespace fs = std::filesystem;

namespace {

// The files of a folder.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files.push_back(entry.path());
  return files;
}

void write_all(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Hidden nodes are those of a text file.
GraphOptions options_of_file(const fs::path& file) {
  GraphOptions options;
  options.grid = "o8";
  TextKind text;
  text.file = file.string();
  options.hidden.kind.set(text);
  options.encoder.kind.set(KnnKind());
  options.processor.kind.choose("none");
  return options;
}

constexpr const char* kPlaces = "0 90 180 270 0 0\n0 0 0 0 80 -80\n";
constexpr const char* kOtherPlaces = "0 90 180 270 0 0\n0 0 0 1 80 -80\n";

}  // namespace

TEST_CASE("a graph is built once and loaded afterwards", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  GraphOptions options = options_of("o8", 1);
  options.file = (folder.path() / "graph.nc").string();
  GraphReport report;
  const std::string hash = load_or_build_graph(options, {}, &report).content_hash();
  REQUIRE_FALSE(report.parts.empty());
  REQUIRE(load_or_build_graph(options, {}, &report).content_hash() == hash);
  REQUIRE(report.parts.empty());
  REQUIRE(report.edge_sets.size() == 3);
  GraphOptions other = options;
  KnnKind two;
  two.num_neighbours = 2;
  other.decoder.kind.set(two);
  REQUIRE_THROWS_WITH(load_or_build_graph(other, {}), ContainsSubstring("other options"));
  // A dataset on another grid than the one that is named.
  REQUIRE_THROWS_AS(load_or_build_graph(options, gaussian_coordinates(parse_gaussian_grid("o16"))),
                    aifs::ConfigError);
}

TEST_CASE("a stored graph of other grids is refused", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  GraphOptions options = options_of("dataset", 1);
  options.file = (folder.path() / "graph.nc").string();
  const Coordinates nodes = gaussian_coordinates(parse_gaussian_grid("o8"));
  REQUIRE(build_hash(options, {{"data", nodes}}) == options_hash(options));
  REQUIRE(build_hash(options_of("o8", 1), {{"data", nodes, {44, 500}}}) ==
          options_hash(options_of("o8", 1)));
  const auto load = [&](const std::vector<int64_t>& grids) {
    return load_or_build_joint_graph(options, {{"data", nodes, grids}});
  };
  const std::string hash = load({44, 500}).content_hash();
  REQUIRE(load({44, 500}).content_hash() == hash);
  REQUIRE_THROWS_WITH(load({500, 44}), ContainsSubstring("other grids"));
  REQUIRE_THROWS_WITH(load({}), ContainsSubstring("other grids"));
}

TEST_CASE("a stored graph of other data nodes is refused", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  GraphOptions options = options_of("dataset", 1);
  options.file = (folder.path() / "graph.nc").string();
  Coordinates nodes = gaussian_coordinates(parse_gaussian_grid("o8"));
  load_or_build_graph(options, nodes);
  nodes.lon_deg[5] += 0.5;
  REQUIRE_THROWS_WITH(load_or_build_graph(options, nodes), ContainsSubstring("data node 5 is at"));
  nodes = gaussian_coordinates(parse_gaussian_grid("o16"));
  REQUIRE_THROWS_WITH(load_or_build_graph(options, nodes),
                      ContainsSubstring("has 544 data nodes, this run has 1600"));
}

TEST_CASE("files of coordinates count by what is in them, not where they are", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  const fs::path here = folder.path() / "here.txt", there = folder.path() / "there.txt";
  write_all(here, kPlaces);
  GraphOptions options = options_of_file(here);
  options.file = (folder.path() / "graph.nc").string();
  const std::string hash = load_or_build_graph(options, {}).content_hash();
  fs::rename(here, there);
  GraphOptions moved = options_of_file(there);
  moved.file = options.file;
  REQUIRE(load_or_build_graph(moved, {}).content_hash() == hash);
  REQUIRE_THROWS_AS(load_or_build_graph(options, {}), aifs::DataError);
  REQUIRE_THROWS_WITH(load_or_build_graph(options, {}), ContainsSubstring("here.txt'"));
  write_all(there, kOtherPlaces);
  REQUIRE_THROWS_WITH(load_or_build_graph(moved, {}),
                      ContainsSubstring("other files of coordinates"));
}

TEST_CASE("a cache has a file for each graph", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  GraphOptions options = options_of("dataset", 1);
  options.cache = (folder.path() / "graphs").string();
  Coordinates nodes = gaussian_coordinates(parse_gaussian_grid("o8"));
  REQUIRE(stored_graph(options, {{"data", nodes}}).empty());
  GraphReport report;
  const std::string hash = load_or_build_graph(options, nodes, &report).content_hash();
  REQUIRE(report.content_hash == hash);
  REQUIRE_FALSE(report.parts.empty());
  REQUIRE(stored_graph(options, {{"data", nodes}}) == files_in(options.cache).at(0));
  REQUIRE(load_or_build_graph(options, nodes, &report).content_hash() == hash);
  REQUIRE(report.content_hash == hash);
  REQUIRE(report.parts.empty());  // loaded
  options.threads = 1;            // nothing that counts
  REQUIRE(load_or_build_graph(options, nodes).content_hash() == hash);
  REQUIRE(files_in(options.cache).size() == 1);
  options.hidden.kind.set(TriKind(2));
  REQUIRE(load_or_build_graph(options, nodes).content_hash() != hash);
  options.hidden.kind.set(TriKind(1));
  nodes.lon_deg[5] += 0.5;
  REQUIRE(load_or_build_graph(options, nodes).content_hash() != hash);
  REQUIRE(load_or_build_joint_graph(options, {{"data", nodes, {44, 500}}}).edge_sets.size() == 3);
  REQUIRE(files_in(options.cache).size() == 4);
}

TEST_CASE("what an interrupted writer left does not count", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  GraphOptions options = options_of("o8", 1);
  options.cache = folder.path().string();
  const std::string hash = load_or_build_graph(options, {}).content_hash();
  const fs::path file = files_in(folder.path()).at(0);
  const std::string content = aifs::read_file(file);
  // Under the name of a writer that goes on.
  fs::remove(file);
  write_all(file.string() + ".tmp-other-1-1", content.substr(0, content.size() / 2));
  GraphReport report;
  REQUIRE(load_or_build_graph(options, {}, &report).content_hash() == hash);
  REQUIRE_FALSE(report.parts.empty());
  // Under the name of the graph, on a file system that cannot rename.
  for (const size_t size : {content.size() / 2, content.size() - 100, size_t{10}, size_t{0}}) {
    write_all(file, content.substr(0, size));
    REQUIRE(load_or_build_graph(options, {}, &report).content_hash() == hash);
    REQUIRE_FALSE(report.parts.empty());
    REQUIRE(load_or_build_graph(options, {}, &report).content_hash() == hash);
    REQUIRE(report.parts.empty());
  }
  // A file of the user's is not written over.
  options.cache = "";
  options.file = file.string();
  write_all(file, content.substr(0, content.size() / 2));
  REQUIRE_THROWS_AS(load_or_build_graph(options, {}), aifs::DataError);
  REQUIRE_THROWS_WITH(load_or_build_graph(options, {}),
                      ContainsSubstring(file.filename().string()));
  REQUIRE(aifs::read_file(file).size() == content.size() / 2);
}

TEST_CASE("a stored graph is found without its edges where it would be loaded", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  const auto keep_in = GENERATE("file", "cache");
  GraphOptions options = options_of("o8", 1);
  (std::string(keep_in) == "file" ? options.file : options.cache) =
      (folder.path() / keep_in).string();
  const Coordinates none;
  const std::vector<NamedCells> data{{"data", none}};
  REQUIRE_FALSE(find_stored_graph(options, data));
  const Graph graph = load_or_build_graph(options, {});
  const auto found = find_stored_graph(options, data);
  REQUIRE(found);
  REQUIRE(found->file == stored_graph(options, data));
  REQUIRE(found->content_hash == graph.content_hash());
  REQUIRE(found->graph.nodes("hidden").num_nodes() == 42);
  REQUIRE(found->graph.edges("data", "hidden").num_edges() == 0);
  options.threads = 1;  // nothing that counts
  REQUIRE(find_stored_graph(options, data));
  const std::string content = aifs::read_file(found->file);
  write_all(found->file, content.substr(0, content.size() / 2));
  if (options.file.empty()) {
    REQUIRE_FALSE(find_stored_graph(options, data));  // to be built again
  } else {
    REQUIRE_THROWS_AS(find_stored_graph(options, data), aifs::DataError);
    write_all(found->file, content);
    options.hidden.kind.set(TriKind(2));
    REQUIRE_THROWS_WITH(find_stored_graph(options, data), ContainsSubstring("other options"));
  }
}

TEST_CASE("many may ask for a graph at once", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  GraphOptions options = options_of("o16", 2);
  options.threads = 1;
  const std::string hash = load_or_build_graph(options, {}).content_hash();
  options.cache = folder.path().string();
  std::vector<std::string> hashes(6);
  std::vector<std::thread> askers;
  for (std::string& own : hashes)
    askers.emplace_back([&] {
      for (int i = 0; i < 3; ++i)
        own = load_or_build_graph(options, {}).content_hash();
    });
  for (std::thread& asker : askers)
    asker.join();
  for (const std::string& own : hashes)
    REQUIRE(own == hash);
  REQUIRE(files_in(folder.path()).size() == 1);
}

TEST_CASE("a file and a folder of graphs exclude each other", "[stored_graph]") {
  GraphOptions options = options_of("o8", 1);
  options.file = "graph.nc";
  options.cache = "graphs";
  REQUIRE_THROWS_WITH(load_or_build_graph(options, {}), ContainsSubstring("graph.cache"));
}

TEST_CASE("a given graph is taken as it is, if its data nodes are the cells", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  const Coordinates cells = gaussian_coordinates(parse_gaussian_grid("o8"));
  Graph graph = build_graph(options_of("o8", 1), {});
  std::reverse(graph.edge_sets[0].source_index.begin(), graph.edge_sets[0].source_index.end());
  std::reverse(graph.edge_sets[0].target_index.begin(), graph.edge_sets[0].target_index.end());
  for (float& lon : graph.node_sets[0].lon_rad)
    if (lon > 3.2F) lon -= static_cast<float>(2 * M_PI);  // counted from -180 degrees
  GraphOptions options;
  options.file = (folder.path() / "graph.nc").string();
  options.given = true;
  REQUIRE_THROWS_WITH(load_or_build_graph(options, cells), ContainsSubstring("does not exist"));
  save_graph(options.file, graph, kGivenGraph, "of another program");
  REQUIRE(load_graph(options.file).origin == "of another program");
  GraphReport report;
  const Graph loaded = load_or_build_graph(options, cells, &report);
  REQUIRE(loaded.content_hash() == graph.content_hash());
  REQUIRE(report.edge_sets.size() == 3);

  GraphOptions built = options_of("dataset", 1);
  built.file = options.file;
  REQUIRE_THROWS_WITH(load_or_build_graph(built, cells), ContainsSubstring("was imported"));

  Coordinates other = cells;
  other.lat_deg[5] -= 1e-4;  // 11 m
  REQUIRE_THROWS_WITH(load_or_build_graph(options, other), ContainsSubstring("data node 5 is at"));
  other.lat_deg[5] = cells.lat_deg[5];
  other.lon_deg[5] -= 360.0;
  REQUIRE(load_or_build_graph(options, other).content_hash() == graph.content_hash());
  other.lat_deg.pop_back();
  other.lon_deg.pop_back();
  REQUIRE_THROWS_WITH(load_or_build_graph(options, other),
                      ContainsSubstring("has 544 data nodes, this run has 543"));
  REQUIRE_THROWS_WITH(load_or_build_joint_graph(options, {{"era5", cells}}),
                      ContainsSubstring("no nodes of the dataset 'era5'"));
}

TEST_CASE("a stored graph with attributes of a field belongs to the field", "[stored_graph]") {
  const aifs::test::TemporaryFolder folder;
  GraphOptions options = parsed(
      R"({"nodes": {"data": {"kind": "dataset", "attributes":
                             {"land": {"kind": "nonzero", "variable": "lsm"}}},
                    "hidden": {"kind": "tri", "refinement": 1}},
          "edges": [{"source": "data", "target": "hidden",
                     "kinds": [{"kind": "knn", "source_mask": "land"}]}]})");
  options.file = (folder.path() / "graph.nc").string();
  const Coordinates nodes = gaussian_coordinates(parse_gaussian_grid("o8"));
  std::vector<float> field(nodes.lat_deg.size(), 1.0F);
  field[3] = 0.0F;
  const auto load = [&] {
    return load_or_build_joint_graph(
        options, {{"data", nodes, {}, [&](const std::string& variable, const std::string&) {
                     REQUIRE(variable == "lsm");
                     return field;
                   }}});
  };
  const Graph graph = load();
  const std::vector<float>& land = graph.nodes("data").attributes.at("land").values;
  REQUIRE(land == field);
  for (const int32_t source : graph.edges("data", "hidden").source_index)
    REQUIRE(source != 3);
  REQUIRE(load().content_hash() == graph.content_hash());
  field[4] = 0.0F;
  REQUIRE_THROWS_WITH(load(), ContainsSubstring("other options"));
}
