// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/icon_kinds.h"

#include <cmath>

#include "core/check.h"
#include "graph/builder.h"
#include "tests/graph/icon_samples.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

TEST_CASE("vertices and cells of an ICON grid file are nodes, up to a level", "[icon_kinds]") {
  const test::TemporaryFolder folder;
  write_icon_grid(folder.path() / "icon.nc", 2);
  const std::string file =
      concat(R"("file": )", nlohmann::json((folder.path() / "icon.nc").string()).dump());
  Sets sets;
  sets.emplace("mesh",
               nodes_of(concat(R"({"kind": "icon_vertices", "max_level": 1, )", file, "}")));
  REQUIRE(sets.at("mesh").set.num_nodes() == 42);
  sets.emplace("cells", nodes_of(concat(R"({"kind": "icon_cells", )", file, "}"), sets));
  REQUIRE(sets.at("cells").set.num_nodes() == 320);
  REQUIRE(sets.at("cells").icon->mesh == sets.at("mesh").icon->mesh);  // read once
  // Every cell lies nearer to a corner of its triangle than the triangle's edges are long.
  const EdgeList edges = edges_of(R"({"kind": "icon_cells"})", sets.at("cells"), sets.at("mesh"));
  REQUIRE(edges.num_edges() == 3 * 320);
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    const auto c = static_cast<size_t>(edges.source_index[e]);
    const auto v = static_cast<size_t>(edges.target_index[e]);
    REQUIRE(great_circle_angle(sets.at("cells").set.lat_rad[c], sets.at("cells").set.lon_rad[c],
                               sets.at("mesh").set.lat_rad[v],
                               sets.at("mesh").set.lon_rad[v]) < 0.63);
  }
  REQUIRE_THROWS_WITH(nodes_of(R"({"kind": "icon_cells"})"),
                      ContainsSubstring("'graph.nodes.n.file': no file is named"));
  REQUIRE_THROWS_WITH(nodes_of(R"({"kind": "icon_cells", "file": "icon.nc", "max_level": 31})"),
                      ContainsSubstring("'graph.nodes.n.max_level'"));
}

TEST_CASE("the recipe for ICON builds on a grid file", "[icon_kinds]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "icon.nc").string();
  write_icon_grid(path, 3);
  std::string text = read_file(test::source_folder() / "configs/graphs/icon.json");
  const auto replace = [&](const std::string& what, const std::string& by) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what))
      text.replace(at, what.size(), by);
  };
  replace("${ICON_GRID:-icon_grid.nc}", path);
  replace("\"max_level\": 5", "\"max_level\": 2 ");
  GraphOptions options;
  config::read(options, config::parse_json(text, "icon.json").at("graph"), "graph", {});
  const IconMesh mesh = read_icon_mesh(path);
  Coordinates cells;
  for (size_t i = 0; i < mesh.cell_lat_rad.size(); ++i) {
    cells.lat_deg.push_back(mesh.cell_lat_rad[i] * 180 / kPi);
    cells.lon_deg.push_back(mesh.cell_lon_rad[i] * 180 / kPi);
  }
  const Graph graph = build_graph(options, cells);
  graph.check();
  REQUIRE(graph.edges("data", "hidden").num_edges() == 3 * 1280);
  REQUIRE(graph.edges("hidden", "hidden").num_edges() == 60 + 240 + 960);
  REQUIRE(graph.edges("hidden", "data").num_edges() == 3 * 1280);
  const GraphReport report = report_of(graph);
  REQUIRE(report.warnings.empty());
  cells.lat_deg.pop_back();
  cells.lon_deg.pop_back();
  REQUIRE_THROWS_WITH(build_graph(options, cells),
                      ContainsSubstring("'graph.nodes.data': nodes 'data' has 1280 points, the "
                                        "dataset has 1279"));
}
