// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/area_weights.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "graph/base/kd_tree.h"
#include "graph/nodes/tri_nodes.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"
#include "tests/support/thread_peers.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

std::vector<double> areas(const NodeSet& nodes, int64_t threads = 0) {
  return spherical_area_weights(nodes.lat_rad, nodes.lon_rad, threads);
}

NodeSet with_poles_and_equator() {
  const auto quarter = static_cast<float>(kPi / 2);
  return {"octahedron",
          {quarter, -quarter, 0.0F, 0.0F, 0.0F, 0.0F},
          {0.0F, 0.0F, 0.0F, quarter, 2 * quarter, 3 * quarter},
          {}};
}

}  // namespace

TEST_CASE("cells cover the sphere once: areas add up to 4 pi", "[area_weights]") {
  for (const NodeSet& nodes :
       {samples::random_nodes("r", 5000, 1), samples::random_nodes("few", 7, 3),
        samples::gaussian_nodes("o", "o32"), samples::gaussian_nodes("n", "n48"),
        samples::gaussian_nodes("f", "f16"), samples::lattice_nodes("limited", 9, 11)}) {
    const auto area = areas(nodes);
    REQUIRE(samples::sum(area) == Approx(4 * kPi).epsilon(1e-10));
    for (const double a : area)
      REQUIRE(a > 0);
  }
}

TEST_CASE("areas of whole grids add up to 4 pi to rounding", "[area_weights]") {
  // Cells are cut out of a square of 1e4 radii: a vertex is off by up to 2e-12.
  for (const char* grid : {"o32", "n48", "o96", "n160"})
    REQUIRE(std::abs(samples::sum(areas(samples::gaussian_nodes("n", grid))) / (4 * kPi) - 1) <
            1e-11);
  for (const int64_t refinement : {3, 5}) {
    const TriNodes mesh = tri_nodes(refinement);
    const auto area = spherical_area_weights(mesh.lat_rad, mesh.lon_rad, 1);
    REQUIRE(std::abs(samples::sum(area) / (4 * kPi) - 1) < 1e-12);
  }
}

TEST_CASE("turning the sphere about its axis changes no area", "[area_weights]") {
  const NodeSet nodes = samples::gaussian_nodes("n", "n48");
  const auto before = areas(nodes);
  for (const double angle : {-2.0, 0.3, 3.1}) {
    NodeSet turned = nodes;
    for (float& lon : turned.lon_rad)
      lon = static_cast<float>(std::remainder(static_cast<double>(lon) + angle, 2 * kPi));
    const auto after = areas(turned);
    // Nodes move by up to 3e-7, where cells are 0.03 wide; near the poles they are narrower.
    for (size_t i = 0; i < before.size(); ++i)
      REQUIRE(after[i] == Approx(before[i]).epsilon(1e-4));
  }
}

TEST_CASE("the nodes of a Platonic solid share the sphere evenly", "[area_weights]") {
  for (const double area : areas(with_poles_and_equator()))
    REQUIRE(area == Approx(4 * kPi / 6).epsilon(1e-6));
  const TriNodes icosahedron = tri_nodes(0);
  for (const double area : spherical_area_weights(icosahedron.lat_rad, icosahedron.lon_rad, 1))
    REQUIRE(area == Approx(4 * kPi / 12).epsilon(1e-6));
}

TEST_CASE("a cell's share is the chance of a random point to be nearest to its node",
          "[area_weights]") {
  const NodeSet nodes = samples::random_nodes("n", 12, 5);
  const auto area = areas(nodes);
  const NodeSet darts = samples::random_nodes("darts", 200000, 6);
  const KdTree<double> tree(unit_vectors<double>(nodes.lat_rad, nodes.lon_rad));
  std::vector<double> hits(area.size(), 0.0);
  std::vector<Neighbour> found;
  for (const auto& point : unit_vectors<double>(darts.lat_rad, darts.lon_rad)) {
    tree.nearest(point, 1, found);
    ++hits[static_cast<size_t>(found.front().index)];
  }
  for (size_t i = 0; i < area.size(); ++i) {
    const double share = area[i] / (4 * kPi), n = static_cast<double>(darts.num_nodes());
    const double deviation = std::sqrt(share * (1 - share) / n);
    REQUIRE(std::abs(hits[i] / n - share) < 5 * deviation);
  }
}

TEST_CASE("areas of known grids are those of the reference", "[area_weights]") {
  const auto check = [](const NodeSet& nodes, double least, double most) {
    const auto area = areas(nodes);
    REQUIRE(*std::min_element(area.begin(), area.end()) == Approx(least).epsilon(1e-6));
    REQUIRE(*std::max_element(area.begin(), area.end()) == Approx(most).epsilon(1e-6));
    return area;
  };
  const auto o96 = check(samples::gaussian_nodes("o96", "o96"), 6.67196655e-5, 3.53132782e-4);
  REQUIRE(o96[0] == Approx(6.69691508e-5).epsilon(1e-6));
  REQUIRE(o96[1] == Approx(6.68230859e-5).epsilon(1e-6));
  REQUIRE(o96[2] == Approx(6.67196873e-5).epsilon(1e-6));
  check(samples::gaussian_nodes("o32", "o32"), 5.94101322e-4, 2.65505258e-3);
  const TriNodes mesh = tri_nodes(5);
  const auto tri = check({"tri5", mesh.lat_rad, mesh.lon_rad, {}}, 1.08706322e-3, 1.47679762e-3);
  REQUIRE(tri[0] == Approx(1.22723461e-3).epsilon(1e-6));
}

TEST_CASE("area weights of O8 are those of the reference", "[area_weights]") {
  const auto tensors = samples::reference_tensors("graph_o8_tri2.safetensors");
  const auto area = areas(samples::reference_nodes(tensors, "data"));
  const double most = *std::max_element(area.begin(), area.end());
  const auto stored = tensors.doubles("nodes/data/area_weight");
  for (size_t i = 0; i < area.size(); ++i)
    REQUIRE(area[i] / most == Approx(stored[i]).epsilon(1e-6));
}

TEST_CASE("outer nodes of a limited area get what lies outside", "[area_weights]") {
  const NodeSet nodes = samples::lattice_nodes("limited", 9, 11);
  const auto area = areas(nodes);
  const double inner = area[4 * 11 + 5];
  REQUIRE(inner < 1e-3);
  REQUIRE(*std::max_element(area.begin(), area.end()) > 1.0);
}

TEST_CASE("areas do not depend on the number of threads", "[area_weights]") {
  const NodeSet nodes = samples::random_nodes("n", 9000, 7);
  REQUIRE(areas(nodes, 1) == areas(nodes, 3));
}

TEST_CASE("nodes at the same place are an error that names both", "[area_weights]") {
  NodeSet nodes = samples::random_nodes("n", 50, 8);
  nodes.lat_rad[37] = nodes.lat_rad[12];
  nodes.lon_rad[37] = nodes.lon_rad[12];
  REQUIRE_THROWS_WITH(areas(nodes), ContainsSubstring("nodes 12 and 37 are at the same place"));
  nodes.lat_rad[5] = nodes.lat_rad[12];  // three of them: still the first two
  nodes.lon_rad[5] = nodes.lon_rad[12];
  REQUIRE_THROWS_WITH(areas(nodes), ContainsSubstring("nodes 5 and 12 are at the same place") &&
                                        ContainsSubstring("3 nodes share theirs with others"));
}

TEST_CASE("rows at the poles and a doubled meridian are named, with weights that work",
          "[area_weights]") {
  // From pole to pole every 10 degrees, and from 0 to 360: 19 rows of 37.
  NodeSet nodes{"regular", {}, {}, {}};
  for (int row = 0; row < 19; ++row) {
    for (int column = 0; column < 37; ++column) {
      nodes.lat_rad.push_back(static_cast<float>(kPi / 2 - row * kPi / 18));
      nodes.lon_rad.push_back(static_cast<float>(column * kPi / 18));
    }
  }
  try {
    areas(nodes);
    FAIL("no error");
  } catch (const DataError& error) {
    REQUIRE_THAT(error.what(),
                 ContainsSubstring("37 nodes are at latitude 90 (nodes 0 to 36) and 37 at "
                                   "latitude -90 (nodes 666 to 702)") &&
                     ContainsSubstring("nodes 37 and 73 are at the same place (latitude 80, "
                                       "longitude 0), 34 nodes share theirs with others"));
    REQUIRE_THAT(error.hint(), ContainsSubstring("graph.area_weight.kind"));
  }
  REQUIRE_THROWS_AS(require_distinct_nodes(nodes.lat_rad, nodes.lon_rad, 2), DataError);
  const NodeSet once = samples::gaussian_nodes("o", "o8");
  REQUIRE_NOTHROW(require_distinct_nodes(once.lat_rad, once.lon_rad, 2));
  REQUIRE_NOTHROW(areas(with_poles_and_equator()));  // one node at each pole is no trouble
}

TEST_CASE("cells without bounds are refused", "[area_weights]") {
  REQUIRE_THROWS_AS(areas(samples::random_nodes("two", 2, 9)), DataError);
  REQUIRE_THROWS_AS(areas(samples::random_nodes("three", 3, 9)), DataError);
  NodeSet circle{"circle", std::vector<float>(9, 0.2F), {}, {}};
  for (int i = 0; i < 9; ++i)
    circle.lon_rad.push_back(0.5F * static_cast<float>(i));
  REQUIRE_THROWS_WITH(areas(circle), ContainsSubstring("all on one circle"));
}

TEST_CASE("cosine weights run from their least to their largest value", "[area_weights]") {
  const std::vector<float> lat{0.0F, static_cast<float>(kPi / 3), static_cast<float>(kPi / 2)};
  const auto weights = cosine_latitude_weights(lat, 0.2, 3.0);
  REQUIRE(weights[0] == Approx(3.0).epsilon(1e-7));
  REQUIRE(weights[1] == Approx(1.6).epsilon(1e-6));
  REQUIRE(weights[2] == Approx(0.2).epsilon(1e-6));
}

TEST_CASE("bands of equal latitude share 4 pi times the radius", "[area_weights]") {
  const std::vector<double> degrees{40, 42, 44, 46, 48, 50};
  std::vector<float> lat;
  for (const float value : radians_from_degrees(degrees))
    lat.insert(lat.end(), 6, value);
  const auto weights = isolatitude_weights(lat);
  REQUIRE(weights[0] == Approx(11048.7217).epsilon(1e-7));
  REQUIRE(weights[6] == Approx(173.0594).epsilon(1e-6));
  REQUIRE(samples::sum(weights) == Approx(4 * kPi * kEarthRadius_km).epsilon(1e-12));
}

TEST_CASE("ranks that divide the nodes get the areas of one, or all the same error",
          "[area_weights]") {
  const NodeSet nodes = samples::random_nodes("n", 3001, 4);
  const std::vector<double> whole = spherical_area_weights(nodes.lat_rad, nodes.lon_rad, 1);
  test::run_peers(3, [&](Peers& peers) {
    if (spherical_area_weights(nodes.lat_rad, nodes.lon_rad, 1, &peers) != whole)
      throw Error("other areas");
  });
  NodeSet shared = nodes;  // two of the last rank
  shared.lat_rad[3000] = shared.lat_rad[2999];
  shared.lon_rad[3000] = shared.lon_rad[2999];
  test::run_peers(3, [&](Peers& peers) {
    std::string what;
    try {
      spherical_area_weights(shared.lat_rad, shared.lon_rad, 1, &peers);
    } catch (const DataError& error) {
      what = error.what();
    }
    if (what.find("nodes 2999 and 3000 are at the same place") == std::string::npos)
      throw Error("rank " + std::to_string(peers.rank()) + " says: " + what);
  });
}
