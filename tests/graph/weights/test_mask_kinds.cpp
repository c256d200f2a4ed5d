// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/mask_kinds.h"

#include "core/check.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

namespace {

using Values = std::vector<double>;

// Five cells of a dataset of three grids.
MeshNodes combined() {
  MeshNodes nodes = at_degrees("data", {{0, 1, 2, 3, 80}, {0, 0, 0, 0, 0}});
  nodes.grids = {2, 1, 2};
  nodes.set.attributes["a"] = {1, {1.0F, 1.0F, 0.0F, 0.0F, 1.0F}};
  nodes.set.attributes["b"] = {1, {1.0F, 0.0F, 0.0F, 1.0F, 0.0F}};
  return nodes;
}

Values mask(const MeshNodes& nodes, const char* text) {
  const auto options = section<NodeAttributeOptions>(text, "p");
  REQUIRE(options.kind->is_mask());
  return options.kind->raw(nodes, 1, "p");
}

}  // namespace

TEST_CASE("grids of a combined dataset are masks", "[mask_kinds]") {
  const MeshNodes nodes = combined();
  REQUIRE(mask(nodes, R"({"kind": "cutout_mask"})") == Values{1, 1, 0, 0, 0});
  REQUIRE(mask(nodes, R"({"kind": "grids_mask", "grids": [1, 2]})") == Values{0, 0, 1, 1, 1});
  REQUIRE_THROWS_WITH(mask(nodes, R"({"kind": "grids_mask", "grids": [3]})"),
                      ContainsSubstring("'p.grids': there is no grid 3 among the 3"));
  MeshNodes single = nodes;
  single.grids.clear();
  REQUIRE(mask(single, R"({"kind": "cutout_mask"})") == Values(5, 1.0));
}

TEST_CASE("masks are combined", "[mask_kinds]") {
  const MeshNodes nodes = combined();
  REQUIRE(mask(nodes, R"({"kind": "not", "masks": ["a"]})") == Values{0, 0, 1, 1, 0});
  REQUIRE(mask(nodes, R"({"kind": "and", "masks": ["a", "b"]})") == Values{1, 0, 0, 0, 0});
  REQUIRE(mask(nodes, R"({"kind": "or", "masks": ["a", "b"]})") == Values{1, 1, 0, 1, 1});
  REQUIRE_THROWS_WITH(mask(nodes, R"({"kind": "not", "masks": ["a", "b"]})"),
                      ContainsSubstring("'p.masks': names 2 masks"));
  REQUIRE_THROWS_WITH(mask(nodes, R"({"kind": "or", "masks": []})"), ContainsSubstring("no mask"));
  REQUIRE_THROWS_WITH(mask(nodes, R"({"kind": "or", "masks": ["c"]})"),
                      ContainsSubstring("no mask 'c'"));
}

TEST_CASE("the area that a mesh was refined in is a mask", "[mask_kinds]") {
  MeshNodes nodes = combined();
  REQUIRE_THROWS_WITH(mask(nodes, R"({"kind": "area_mask"})"), ContainsSubstring("not of an area"));
  const std::vector<float> zero{0.0F};
  nodes.area = std::make_shared<AreaMask>(zero, zero, 250.0);
  REQUIRE(mask(nodes, R"({"kind": "area_mask"})") == Values{1, 1, 1, 0, 0});
}
