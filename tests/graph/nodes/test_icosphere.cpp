// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/icosphere.h"

#include <cmath>
#include <set>

#include "core/check.h"
#include "graph/edges/multi_scale_edges.h"
#include "graph/nodes/tri_nodes.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

TEST_CASE("refinement R has 10 * 4^R + 2 vertices and 20 * 4^R faces, all used", "[icosphere]") {
  Faces faces = icosahedron_faces();
  for (int64_t r = 0; r <= 4; ++r) {
    if (r > 0) faces = refine_faces(faces, icosphere_vertices(r - 1));
    REQUIRE(static_cast<int64_t>(icosphere_points(r).size()) == icosphere_vertices(r));
    REQUIRE(static_cast<int64_t>(faces.size()) == icosphere_faces(r));
    std::set<int32_t> used;
    std::set<std::pair<int32_t, int32_t>> edges;
    for (const auto& face : faces) {
      used.insert(face.begin(), face.end());
      for (size_t i = 0; i < 3; ++i)
        REQUIRE(edges.insert({face[i], face[(i + 1) % 3]}).second);  // once in this direction
    }
    REQUIRE(static_cast<int64_t>(used.size()) == icosphere_vertices(r));
    REQUIRE(static_cast<int64_t>(edges.size()) == 60 * (int64_t{1} << (2 * r)));
    for (const auto& [a, b] : edges)
      REQUIRE(edges.count({b, a}) == 1);
  }
}

TEST_CASE("vertices of a level keep their numbers and places on all finer levels", "[icosphere]") {
  const auto coarse = icosphere_points(2), fine = icosphere_points(5);
  for (size_t v = 0; v < coarse.size(); ++v)
    REQUIRE(squared_distance(coarse[v], fine[v]) < 1e-30);
}

TEST_CASE("vertices lie on the unit sphere; level 1 has both poles", "[icosphere]") {
  const auto points = icosphere_points(1);
  for (const auto& p : points)
    REQUIRE(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] == Approx(1.0).epsilon(1e-15));
  const TriNodes nodes = tri_nodes(1);
  REQUIRE(nodes.lat_rad.front() == 1.57079637F);
  REQUIRE(nodes.lat_rad.back() == -1.57079637F);
}

TEST_CASE("refinement 1 has the vertices and faces of the reference", "[icosphere]") {
  const auto reference = samples::reference_json("golden_graphs.json")["tri"]["1"];
  const auto points = icosphere_points(1);
  const Faces faces = refine_faces(icosahedron_faces(), 12);
  for (size_t v = 0; v < points.size(); ++v) {
    for (size_t d = 0; d < 3; ++d)
      REQUIRE(std::abs(points[v][d] - reference["vertices_raw"][v][d].get<double>()) < 1e-15);
  }
  REQUIRE(reference["faces_raw"].get<Faces>() == faces);
  const TriNodes nodes = tri_nodes(1);
  for (size_t n = 0; n < nodes.vertex.size(); ++n) {
    REQUIRE(nodes.lat_rad[n] == reference["latlon_f32_canonical"][n][0].get<float>());
    REQUIRE(nodes.lon_rad[n] == reference["latlon_f32_canonical"][n][1].get<float>());
  }
}

TEST_CASE("meshes have the checksums of the reference up to refinement 8", "[icosphere]") {
  const auto json = samples::reference_json("golden_graphs.json");
  for (int64_t r = 0; r <= 8; ++r) {
    const auto& reference = json["tri"][concat(r)];
    const TriNodes nodes = tri_nodes(r);
    REQUIRE(nodes.num_nodes() == reference["nodes"].get<int64_t>());
    const std::set<float> latitudes(nodes.lat_rad.begin(), nodes.lat_rad.end());
    REQUIRE(latitudes.size() == reference["distinct_f32_lat"].get<size_t>());
    const EdgeList edges = multi_scale_edges(nodes, {1, level_range(0, r)});
    REQUIRE(edges.num_edges() == reference["edges_levels_0_to_R"].get<int64_t>());
    const auto& checksum = reference["checksum_levels0R_canonical"];
    REQUIRE(samples::sum(edges.source_index) == checksum["sum_src"].get<double>());
    REQUIRE(samples::sum(edges.target_index) == checksum["sum_dst"].get<double>());
    REQUIRE(samples::sum_of_products(edges) == checksum["sum_src_dst_mod2^64"].get<uint64_t>());
  }
}

TEST_CASE("nodes are ordered by latitude, then longitude, both descending", "[icosphere]") {
  const std::vector<float> lat{0.0F, -0.0F, 1.0F, -1.0F}, lon{-1.0F, 2.0F, 0.0F, 3.0F};
  REQUIRE(canonical_order(lat, lon) == std::vector<int32_t>{2, 1, 0, 3});
  const TriNodes nodes = tri_nodes(3);
  for (size_t n = 1; n < nodes.lat_rad.size(); ++n) {
    const bool descends =
        nodes.lat_rad[n] < nodes.lat_rad[n - 1] ||
        (nodes.lat_rad[n] == nodes.lat_rad[n - 1] && nodes.lon_rad[n] < nodes.lon_rad[n - 1]);
    REQUIRE(descends);
  }
}

TEST_CASE("an impossible refinement is refused", "[icosphere]") {
  REQUIRE_THROWS_WITH(icosphere_points(-1), ContainsSubstring("refinement -1"));
  REQUIRE_THROWS_WITH(icosphere_points(kMaxRefinement + 1), ContainsSubstring("is not in"));
}
