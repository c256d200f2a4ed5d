// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/planar_weights.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

PlanarWeights weights(const NodeSet& nodes) {
  return planar_weights(nodes.lat_rad, nodes.lon_rad, 2);
}

}  // namespace

TEST_CASE("cells of a lattice are its squares; rim cells copy them", "[planar_weights]") {
  const auto lattice = weights(samples::lattice_nodes("n", 7, 9));
  for (const double area : lattice.areas)
    REQUIRE(area == Approx(0.03125 * 0.03125).epsilon(1e-5));
  REQUIRE(std::count(lattice.own_cell.begin(), lattice.own_cell.end(), 1) == 35);
}

TEST_CASE("the date line does not matter", "[planar_weights]") {
  NodeSet nodes = samples::random_nodes("n", 60, 1);
  for (size_t i = 0; i < nodes.lat_rad.size(); ++i) {
    nodes.lat_rad[i] *= 0.1F;
    nodes.lon_rad[i] = 0.1F * (nodes.lon_rad[i] - 3.0F);
  }
  NodeSet turned = nodes;
  for (float& lon : turned.lon_rad) {
    lon += static_cast<float>(kPi);
    if (lon > static_cast<float>(kPi)) lon -= static_cast<float>(2 * kPi);
  }
  const auto here = weights(nodes), there = weights(turned);
  REQUIRE(here.own_cell == there.own_cell);
  for (size_t i = 0; i < here.areas.size(); ++i)
    REQUIRE(here.areas[i] == Approx(there.areas[i]).epsilon(1e-4));
}

TEST_CASE("sets without a bounded cell have weights 1", "[planar_weights]") {
  const NodeSet line{"line", std::vector<float>(5, 0.1F), {0, 0.1F, 0.2F, 0.3F, 0.4F}, {}};
  for (const NodeSet& nodes :
       {line, samples::random_nodes("few", 3, 2), samples::random_nodes("one", 1, 3)})
    REQUIRE(weights(nodes).areas == std::vector<double>(nodes.lat_rad.size(), 1.0));
  REQUIRE(weights({}).areas.empty());
}

TEST_CASE("of nodes at the same place one has the cell, all have its area", "[planar_weights]") {
  NodeSet nodes = samples::lattice_nodes("n", 7, 9);
  for (int copies = 0; copies < 100; ++copies) {
    nodes.lat_rad.push_back(nodes.lat_rad[31]);
    nodes.lon_rad.push_back(nodes.lon_rad[31]);
  }
  const auto result = weights(nodes);
  REQUIRE(result.own_cell[31] == 1);
  REQUIRE(result.own_cell.back() == 0);
  REQUIRE(result.areas.back() == result.areas[31]);
}

TEST_CASE("masked nodes have no part in the cells of the others", "[planar_weights]") {
  const NodeSet nodes = samples::lattice_nodes("n", 7, 9);
  std::vector<float> mask(nodes.lat_rad.size(), 0.0F);
  NodeSet selected{"selected", {}, {}, {}};
  for (size_t i = 0; i < mask.size(); i += 2) {
    mask[i] = 0.5F;
    selected.lat_rad.push_back(nodes.lat_rad[i]);
    selected.lon_rad.push_back(nodes.lon_rad[i]);
  }
  const auto masked = masked_planar_weights(nodes.lat_rad, nodes.lon_rad, mask, 1);
  const auto alone = weights(selected).areas;
  for (size_t i = 0; i < masked.size(); ++i)
    REQUIRE(masked[i] == (i % 2 == 0 ? 0.5 * alone[i / 2] : 0.0));
  REQUIRE_THROWS_WITH(masked_planar_weights(nodes.lat_rad, nodes.lon_rad, {}, 1),
                      ContainsSubstring("a mask of 0 values"));
}
