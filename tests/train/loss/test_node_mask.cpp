// SPDX-License-Identifier: Apache-2.0
#include "train/loss/node_mask.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

graph::NodeSet three_cells() {
  graph::NodeSet nodes;
  nodes.name = "data";
  nodes.lat_rad = {0.1f, 0.2f, 0.3f};
  nodes.lon_rad = {0.0f, 1.0f, 2.0f};
  nodes.attributes["cutout_mask"] = {1, {1.0f, 0.0f, 0.5f}};
  nodes.attributes["nothing"] = {1, {0.0f, 0.0f, 0.0f}};
  nodes.attributes["two"] = {2, {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f}};
  nodes.attributes["short"] = {1, {1.0f, 1.0f}};
  return nodes;
}

}  // namespace

TEST_CASE("a mask is true where its attribute is not 0", "[node_mask]") {
  const at::Tensor mask = node_mask(three_cells(), "cutout_mask", "model.output_mask");
  REQUIRE(at::equal(mask, at::tensor({1, 0, 1}, at::kByte).to(at::kBool)));
}

TEST_CASE("attributes that are no mask of the nodes are errors of the option", "[node_mask]") {
  const auto fault = [](const char* name) {
    try {
      node_mask(three_cells(), name, "model.output_mask");
    } catch (const ConfigError& error) {
      return error.path() == "model.output_mask" ? concat(error.what(), "; ", error.hint())
                                                 : "path";
    }
    return std::string("none");
  };
  REQUIRE_THAT(fault("cutout_mak"), ContainsSubstring("no attribute 'cutout_mak'") &&
                                        ContainsSubstring("'cutout_mask'"));
  REQUIRE_THAT(fault("nothing"), ContainsSubstring("marks no node"));
  REQUIRE_THAT(fault("two"), ContainsSubstring("6 values for 3 nodes"));
  REQUIRE_THAT(fault("short"), ContainsSubstring("2 values for 3 nodes"));
}
