// SPDX-License-Identifier: Apache-2.0
#include "graph/recipe.h"

#include "core/check.h"
#include "core/file_io.h"
#include "graph/builder.h"
#include "tests/graph/graph_samples.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

namespace {

GraphOptions graph_of(const std::string& text) {
  return section<GraphOptions>(text, "graph");
}

const char* const kLong = R"({
  "grid": "o16",
  "nodes": {"hidden": {"kind": "tri", "refinement": 2}},
  "edges": [
    {"source": "data", "target": "hidden", "kinds": [{"kind": "cutoff"}]},
    {"source": "hidden", "target": "hidden", "kinds": [{"kind": "multi_scale"}]},
    {"source": "hidden", "target": "data", "kinds": [{"kind": "knn"}]}]})";

}  // namespace

TEST_CASE("the long form of the default graph is the short one, bit for bit", "[recipe]") {
  const Graph listed = build_graph(graph_of(kLong), {});
  const Graph usual = build_graph(graph_of(R"({"grid": "o16", "hidden": {"refinement": 2}})"), {});
  REQUIRE(listed.content_hash() == usual.content_hash());
  REQUIRE(options_hash(graph_of(kLong)) !=
          options_hash(graph_of(R"({"grid": "o16", "hidden": {"refinement": 2}})")));
}

TEST_CASE("several builders between two sets give every edge once, sorted", "[recipe]") {
  const Graph graph = build_graph(graph_of(R"({
    "grid": "o8",
    "nodes": {"hidden": {"kind": "tri", "refinement": 2}},
    "edges": [{"source": "data", "target": "hidden",
               "kinds": [{"kind": "knn", "num_neighbours": 12}, {"kind": "reversed_knn"}]},
              {"source": "hidden", "target": "data", "kinds": [{"kind": "knn"}],
               "attributes": {"azimuth": {"kind": "azimuth"}}}]})"),
                                  {});
  const EdgeSet& edges = graph.edges("data", "hidden");
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (size_t e = 0; e < edges.source_index.size(); ++e)
    pairs.emplace_back(edges.source_index[e], edges.target_index[e]);
  REQUIRE(std::adjacent_find(pairs.begin(), pairs.end(), std::greater_equal<>()) == pairs.end());
  REQUIRE(edges.num_edges() > 3 * 544);
  REQUIRE(edges.num_edges() < 3 * 544 + 12 * 162);
  REQUIRE(graph.edges("hidden", "data").attributes.size() == 1);
  REQUIRE(graph.edges("hidden", "data").attributes.at("azimuth").width == 1);
}

TEST_CASE("attributes are made in order, and those for others only are dropped", "[recipe]") {
  Coordinates cells;
  for (int i = 0; i < 60; ++i) {
    cells.lat_deg.push_back(40.0 + i / 10);
    cells.lon_deg.push_back(5.0 + i % 10);
  }
  const GraphOptions options = graph_of(R"({
    "nodes": {
      "data": {"kind": "dataset", "attributes": {
        "_region": {"kind": "cutout_mask"},
        "boundary": {"kind": "not", "masks": ["_region"]},
        "area_weight": {"kind": "masked_planar", "mask": "_region"}}},
      "hidden": {"kind": "limited_area_tri", "refinement": 6, "mask": "_region", "margin_km": 50}},
    "edges": [
      {"source": "data", "target": "hidden",
       "kinds": [{"kind": "cutoff"}, {"kind": "cutoff", "cutoff_factor": 1.5,
                                      "source_mask": "boundary"}]},
      {"source": "hidden", "target": "data", "kinds": [{"kind": "knn", "target_mask": "_region"}]}
    ]})");
  const std::vector<NamedCells> datasets{{"data", cells, {40, 20}}};
  const Graph graph = build_joint_graph(options, datasets);
  const auto& attributes = graph.nodes("data").attributes;
  REQUIRE(attributes.size() == 2);
  REQUIRE(attributes.at("boundary").values[39] == 0.0F);
  REQUIRE(attributes.at("boundary").values[40] == 1.0F);
  REQUIRE(attributes.at("area_weight").values[50] == 0.0F);
  REQUIRE(graph.edges("hidden", "data").num_edges() == 3 * 40);
  const Graph outline = joint_graph_outline(options, datasets);
  REQUIRE(outline.nodes("hidden").num_nodes() == graph.nodes("hidden").num_nodes());
}

TEST_CASE("hidden nodes of any kind, in the short form, too", "[recipe]") {
  const GraphOptions options = graph_of(R"({
    "grid": "o16", "hidden": {"kind": "gaussian", "grid": "o8"}, "processor": {"kind": "none"}})");
  const Graph graph = build_graph(options, {});
  REQUIRE(graph.nodes("hidden").num_nodes() == 544);
  REQUIRE(graph.edge_sets.size() == 2);
  REQUIRE_THROWS_WITH(
      build_graph(graph_of(R"({"grid": "o16", "hidden": {"kind": "gaussian", "grid": "o8"}})"), {}),
      ContainsSubstring("'graph.processor': multi_scale edges need nodes of an icosahedral mesh"));
  REQUIRE_THROWS_WITH(
      graph_outline(graph_of(R"({"grid": "o8", "hidden": {"kind": "gaussian", "grid": "o96"},
                                 "processor": {"kind": "knn"}})"),
                    {}),
      ContainsSubstring("'graph.hidden'"));
}

TEST_CASE("recipes that make no sense name the option", "[recipe]") {
  const auto with = [](const char* key, const char* value) {
    config::Json json = config::Json::parse(kLong);
    json[config::Json::json_pointer(key)] = config::Json::parse(value);
    return json.dump();
  };
  const auto refused = [](const std::string& text, const char* why) {
    REQUIRE_THROWS_WITH(build_graph(graph_of(text), {}), ContainsSubstring(why));
  };
  refused(with("/edges/0/target", R"("hiden")"), "'graph.edges.0.target': there is no node set");
  refused(with("/edges/0/kinds/0/kind", R"("multi_scale")"), "'graph.edges.0.kinds.0'");
  refused(with("/edges/1/kinds/0/kind", R"("none")"), "'graph.edges.1.kinds.0.kind'");
  refused(with("/edges/1/kinds", "[]"), "'graph.edges.1.kinds': names no kind");
  refused(with("/edges", "[]"), "'graph.edges': is empty");
  refused(with("/edges/1/kinds/0/levels", "[3]"), "'graph.edges.1.kinds.0.levels'");
  refused(with("/edges/2", config::Json::parse(kLong)["edges"][0].dump().c_str()),
          "'graph.edges.2': edges data->hidden stand in entry 0, too");
  refused(with("/encoder", R"({"kind": "knn"})"), "'graph.encoder': is of the short form");
  refused(with("/nodes/data", R"({"kind": "dataset"})"), "the dataset has no coordinates");
  refused(with("/area_weight", R"({"kind": "cutout_mask"})"), "'graph.area_weight.kind'");
}

TEST_CASE("the recipe for several datasets has edges of each", "[recipe]") {
  std::string text = read_file(test::source_folder() / "configs/graphs/several_datasets.json");
  text.replace(text.find("\"refinement\": 5"), 15, "\"refinement\": 1");
  GraphOptions options;
  config::read(options, config::parse_json(text, "several").at("graph"), "graph", {});
  const Coordinates era5 = gaussian_coordinates(parse_gaussian_grid("o8"));
  const Coordinates cerra{{50.0, 51.0, 52.0, 53.0, 54.0, 51.5, 52.5, 53.5, 50.5, 54.5, 55.0, 56.0},
                          {5.0, 6.0, 7.0, 8.0, 9.0, 5.5, 6.5, 7.5, 8.5, 9.5, 5.2, 6.2}};
  const Graph graph = build_joint_graph(options, {{"era5", era5}, {"cerra", cerra}});
  REQUIRE(graph.edges("hidden", "era5").num_edges() == 4 * 544);
  REQUIRE(graph.edges("hidden", "cerra").num_edges() == 3 * 12);
  REQUIRE(graph.edges("cerra", "hidden").num_edges() == 12 * 42);
  REQUIRE(graph.nodes("cerra").attributes.count("area_weight") == 1);
}

TEST_CASE("the outline takes weights of meshes and weights as masks as building does", "[recipe]") {
  const GraphOptions spherical = graph_of(R"({
    "grid": "o8",
    "nodes": {"hidden": {"kind": "tri", "refinement": 1,
                         "attributes": {"area": {"kind": "spherical"}}}},
    "edges": [{"source": "data", "target": "hidden", "kinds": [{"kind": "knn"}]}]})");
  REQUIRE(graph_outline(spherical, {}).nodes("hidden").attributes.count("area") == 1);
  for (const char* mask : {"weight", "same"}) {
    const GraphOptions limited = graph_of(concat(R"({
      "grid": "o8",
      "nodes": {"data": {"kind": "gaussian", "grid": "o8", "attributes": {
                  "weight": {"kind": "uniform"}, "same": {"kind": "and", "masks": ["weight"]}}},
                "hidden": {"kind": "limited_area_tri", "refinement": 1, "margin_km": 2000,
                           "mask": ")",
                                                 mask, R"("}},
      "edges": [{"source": "data", "target": "hidden", "kinds": [{"kind": "knn"}]}]})"));
    REQUIRE(graph_outline(limited, {}).nodes("hidden").num_nodes() == 42);
  }
}

TEST_CASE("a dataset whose name no node set can have is refused", "[recipe]") {
  REQUIRE_THROWS_WITH(recipe_of(GraphOptions(), {"a_to_b"}),
                      ContainsSubstring("'data.datasets.a_to_b'"));
}
