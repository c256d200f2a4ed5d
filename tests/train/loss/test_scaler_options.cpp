// SPDX-License-Identifier: Apache-2.0
#include "train/loss/scaler_options.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "train/loss/loss_options.h"

using namespace aifs;
using namespace aifs::train;

namespace {

std::string path_of_error(const std::string& text) {
  try {
    LossOptions options;
    config::read(options, config::parse_json(text, "test"), "loss", {});
    options.check(/*members=*/1, /*times_out=*/1);
  } catch (const ConfigError& error) {
    return error.path();
  }
  return "none";
}

}  // namespace

TEST_CASE("named scalers say what their kind reads, and some loss uses them", "[scaler_options]") {
  const auto fault = [](const std::string& scaler, const std::string& used = "own") {
    return path_of_error(R"({"scalers": ["node_weights", ")" + used +
                         R"("], "named_scalers": {"own": )" + scaler + "}}");
  };
  REQUIRE(fault(R"({"kind": "node_weights", "node_attribute": "x", "norm": "unit-mean"})") ==
          "none");
  REQUIRE(fault(R"({"kind": "node_weights", "time_weights": [1]})") ==
          "loss.named_scalers.own.time_weights");
  REQUIRE(fault(R"({"kind": "nan_mask_weights", "norm": "unit-sum"})") ==
          "loss.named_scalers.own.norm");
  REQUIRE(fault(R"({"kind": "values", "values": [1]})") == "loss.named_scalers.own.axes");
  REQUIRE(fault(R"({"kind": "values", "axes": ["node"], "values": [1]})") ==
          "loss.named_scalers.own.axes.0");
  REQUIRE(fault(R"({"kind": "values", "axes": ["grid", "time"], "values": [1]})") ==
          "loss.named_scalers.own.axes");
  REQUIRE(fault(R"({"kind": "values", "axes": ["time", "grid"], "values": [1]})") ==
          "loss.named_scalers.own.shape");
  REQUIRE(fault(R"({"kind": "values", "axes": ["time", "grid"], "shape": [1, 2],
                    "values": [1]})") == "loss.named_scalers.own.values");
  REQUIRE(fault("{}", "pressure_level") == "loss.named_scalers.own");  // no loss uses it
  REQUIRE(fault("{}", "values") == "loss.scalers.1");                  // a kind without a name
  const std::string on_grid = R"("axes": ["grid"], "values": [1]}}})";
  REQUIRE(path_of_error(R"({"scalers": ["own"], "named_scalers": {"own": {"kind": "values", )" +
                        on_grid) == "none");
}

TEST_CASE("a scaler knows the dimensions on which it acts", "[scaler_options]") {
  ScalerOptions options;
  REQUIRE(options.acting_axes() == std::vector<Axis>{kVariable});
  options.kind = ScalerKind::kSpectral;
  REQUIRE(options.acting_axes() == std::vector<Axis>{kGrid});
  options.kind = ScalerKind::kLeadTimeDecay;
  REQUIRE(options.acting_axes() == std::vector<Axis>{kTime});
  options.kind = ScalerKind::kNanMask;
  REQUIRE(options.acting_axes() == std::vector<Axis>{kBatch, kGrid, kVariable});
  options.kind = ScalerKind::kValues;
  options.axes = {"batch", "ensemble"};
  REQUIRE(options.acting_axes() == std::vector<Axis>{kBatch, kEnsemble});
}
