// SPDX-License-Identifier: Apache-2.0
#include "train/loss/values_scaler.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "train/loss/loss_options.h"

using namespace aifs;
using namespace aifs::train;

TEST_CASE("listed values fill the axes that they name", "[values_scaler]") {
  const auto fault = [](const std::string& scaler) {
    try {
      LossOptions options;
      config::read(options,
                   config::parse_json(R"({"named_scalers": {"own": )" + scaler + "}}", "test"),
                   "loss", {});
    } catch (const ConfigError& error) {
      return error.path();
    }
    return std::string("none");
  };
  REQUIRE(fault(R"({"kind": "values", "values": [1]})") == "loss.named_scalers.own.axes");
  REQUIRE(fault(R"({"kind": "values", "axes": ["node"], "values": [1]})") ==
          "loss.named_scalers.own.axes.0");
  REQUIRE(fault(R"({"kind": "values", "axes": ["grid", "time"], "values": [1]})") ==
          "loss.named_scalers.own.axes");
  REQUIRE(fault(R"({"kind": "values", "axes": ["time", "grid"], "values": [1]})") ==
          "loss.named_scalers.own.shape");
  REQUIRE(fault(R"({"kind": "values", "axes": ["time", "grid"], "shape": [1, 2],
                    "values": [1]})") == "loss.named_scalers.own.values");
  REQUIRE(fault(R"({"kind": "values", "axes": ["time", "grid"], "shape": [1, 2],
                    "values": [1, 2]})") == "none");
}

TEST_CASE("listed values act on the axes that they name", "[values_scaler]") {
  ValuesKind scaler;
  scaler.axis_names = {"batch", "ensemble"};
  REQUIRE(scaler.axes() == std::vector<Axis>{kBatch, kEnsemble});
}
