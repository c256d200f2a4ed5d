// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/icon_mesh.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "tests/graph/icon_samples.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

IconMesh mesh_of_level(int64_t level) {
  const test::TemporaryFolder folder;
  samples::write_icon_grid(folder.path() / "icon.nc", level);
  return read_icon_mesh(folder.path() / "icon.nc");
}

using Pairs = std::set<std::pair<int32_t, int32_t>>;

Pairs pairs_of(const EdgeList& edges) {
  Pairs pairs;
  for (size_t e = 0; e < edges.source_index.size(); ++e)
    pairs.emplace(edges.source_index[e], edges.target_index[e]);
  return pairs;
}

// All mesh edges of levels 0 ... last, both ways; vertices are nested.
Pairs icosphere_edges(int64_t last) {
  Pairs pairs;
  Faces faces = icosahedron_faces();
  for (int64_t l = 0; l <= last; ++l) {
    if (l > 0) faces = refine_faces(faces, icosphere_vertices(l - 1));
    for (const auto& face : faces)
      for (size_t i = 0; i < 3; ++i)
        pairs.emplace(face[i], face[(i + 1) % 3]);
  }
  return pairs;
}

}  // namespace

TEST_CASE("edges of a bisected icosahedron are found again on all levels", "[icon_mesh]") {
  const IconMesh mesh = mesh_of_level(3);
  REQUIRE(mesh.finest_level() == 3);
  for (const int64_t level : {0, 1, 2, 3}) {
    const EdgeList edges = icon_mesh_edges(mesh, level);
    const Pairs wanted = icosphere_edges(level);
    REQUIRE(pairs_of(edges) == wanted);
    REQUIRE(edges.num_edges() == static_cast<int64_t>(wanted.size()));  // none twice
  }
}

TEST_CASE("a cell is joined with the triangle that it lies in", "[icon_mesh]") {
  const IconMesh mesh = mesh_of_level(3);
  for (const int64_t level : {1, 3}) {
    const EdgeList edges = icon_cell_edges(mesh, 3, level);
    REQUIRE(edges.num_edges() == 3 * 1280);
    // Face 4f ... 4f + 3 come of face f: cells of a triangle follow each other.
    const int64_t children = level == 3 ? 1 : 16;
    for (int64_t cell = 0; cell < 1280; ++cell) {
      std::set<int32_t> own, first;
      const int64_t elder = cell / children * children;
      for (int64_t k = 0; k < 3; ++k) {
        REQUIRE(edges.source_index[static_cast<size_t>(3 * cell + k)] == cell);
        own.insert(edges.target_index[static_cast<size_t>(3 * cell + k)]);
        first.insert(edges.target_index[static_cast<size_t>(3 * elder + k)]);
      }
      REQUIRE(own.size() == 3);
      REQUIRE(own == first);
      REQUIRE(*own.rbegin() < icosphere_vertices(level));
    }
  }
}

TEST_CASE("a file that is no ICON grid says what is wrong", "[icon_mesh]") {
  const test::TemporaryFolder folder;
  samples::write_icon_grid(folder.path() / "degrees.nc", 1, "degree");
  REQUIRE_THROWS_WITH(read_icon_mesh(folder.path() / "degrees.nc"),
                      ContainsSubstring("not in units \"radian\""));
  {
    test::NetcdfWriter file(folder.path() / "other.nc");
    file.dimension("x", 1);
    file.variable("lat", "f8", {"x"}, {}, {0.0});
  }
  REQUIRE_THROWS_WITH(read_icon_mesh(folder.path() / "other.nc"), ContainsSubstring("'clat'"));
}

TEST_CASE("levels out of range and edges from a vertex to itself are refused", "[icon_mesh]") {
  const test::TemporaryFolder folder;
  const auto refused = [&](const samples::IconFault& fault, const char* why) {
    const fs::path path = folder.path() / "icon.nc";
    samples::write_icon_grid(path, 1, "radian", fault);
    REQUIRE_THROWS_AS(read_icon_mesh(path), DataError);
    REQUIRE_THROWS_WITH(read_icon_mesh(path),
                        ContainsSubstring("icon.nc") && ContainsSubstring(why));
    fs::remove(path);
  };
  for (const double level : {2147483647.0, 31.0, -1.0}) {
    refused([&](auto& levels, auto&) { levels[7] = level; }, "at index 7");
    refused([&](auto& levels, auto&) { levels[7] = level; }, "'refinement_level_v' holds");
  }
  refused([](auto&, auto& ends) { ends[5] = ends[ends.size() / 2 + 5]; }, "with itself at index 5");
}
