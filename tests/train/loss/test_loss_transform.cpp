// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_transform.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

// The path of what is wrong with a transform of a field of so many nodes.
std::string fault_of_transform(const std::string& text, size_t num_nodes,
                               const at::Tensor& output_mask = {}) {
  const data::VariableTable variables({"t"}, {});
  const data::Statistics statistics{{0}, {1}, {0}, {1}};
  const std::map<int64_t, data::Statistics> tendencies;
  graph::NodeSet nodes;
  nodes.lat_rad.resize(num_nodes);
  nodes.lon_rad.resize(num_nodes);
  try {
    TransformOptions options;
    config::read(options, config::parse_json(text, "test"), "t", {});
    options.check({.variables = variables,
                   .statistics = statistics,
                   .tendencies = tendencies,
                   .nodes = nodes,
                   .grid_name = "o4",
                   .output_mask = output_mask},
                  "t");
  } catch (const ConfigError& error) {
    return error.path();
  }
  return "none";
}

}  // namespace

TEST_CASE("a transform is of as many points as its field has", "[loss_transform]") {
  REQUIRE(fault_of_transform("{}", 208) == "none");  // o4: rings of 20, 24 ... 32, twice
  REQUIRE(fault_of_transform("{}", 207) == "t");
  REQUIRE(fault_of_transform(R"({"kind": "fft2d", "x_dim": 4, "y_dim": 3})", 12) == "none");
  REQUIRE(fault_of_transform(R"({"kind": "fft2d", "x_dim": 4, "y_dim": 3})", 13) == "t");
  REQUIRE(fault_of_transform(R"({"kind": "dct2d", "x_dim": 4, "y_dim": 3, "subgrid": [1, 13]})",
                             13) == "none");
  REQUIRE(fault_of_transform(R"({"kind": "dct2d", "x_dim": 4, "y_dim": 3, "subgrid": [2, 14]})",
                             13) == "t.subgrid");
}

TEST_CASE("a sphere has no rectangle, and a rectangle no truncation", "[loss_transform]") {
  REQUIRE(fault_of_transform(R"({"x_dim": 4})", 208) == "t.x_dim");
  REQUIRE(fault_of_transform(R"({"filter": true})", 208) == "t.filter");
  REQUIRE(fault_of_transform(R"({"kind": "dct2d", "filter": true})", 12) == "t.filter");
  REQUIRE(fault_of_transform(R"({"kind": "fft2d", "truncation": 3})", 12) == "t.truncation");
  REQUIRE(fault_of_transform(R"({"kind": "reduced_sht"})", 208) == "t.kind");
  REQUIRE(fault_of_transform(R"({"truncation": 8})", 208) == "t.truncation");
}

TEST_CASE("a transform covers no cells outside the output mask", "[loss_transform]") {
  at::Tensor mask = at::zeros({20}, at::kBool);
  mask.slice(0, 3, 15).fill_(true);
  const auto fault = [&](const char* subgrid) {
    return fault_of_transform(
        concat(R"({"kind": "fft2d", "x_dim": 4, "y_dim": 3, "subgrid": )", subgrid, "}"), 20, mask);
  };
  REQUIRE(fault("[3, 15]") == "none");
  REQUIRE(fault("[2, 14]") == "t.subgrid");
  REQUIRE(fault("[4, 16]") == "t.subgrid");
  REQUIRE(fault_of_transform(R"({"kind": "fft2d", "x_dim": 5, "y_dim": 4})", 20, mask) ==
          "t.subgrid");
  REQUIRE(fault_of_transform(R"({"projection": {"grid": "o4"}})", 20, mask) == "t.projection.grid");
}
