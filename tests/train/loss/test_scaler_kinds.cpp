// SPDX-License-Identifier: Apache-2.0
#include "train/loss/scaler_kind.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "tests/support/catch.h"
#include "train/loss/grid_scalers.h"
#include "train/loss/loss_options.h"
#include "train/loss/tendency_scalers.h"
#include "train/loss/time_scaler.h"

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

TEST_CASE("named scalers say what their kind reads, and some loss uses them", "[scaler_kinds]") {
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
  REQUIRE(fault("{}", "pressure_level") == "loss.named_scalers.own");  // no loss uses it
  REQUIRE(fault("{}", "values") == "loss.scalers.1");                  // a kind without a name
  const std::string on_grid = R"("axes": ["grid"], "values": [1]}}})";
  REQUIRE(path_of_error(R"({"scalers": ["own"], "named_scalers": {"own": {"kind": "values", )" +
                        on_grid) == "none");
}

TEST_CASE("a scaler knows the dimensions on which it acts", "[scaler_kinds]") {
  ScalerOptions options;
  REQUIRE(options.kind->axes() == std::vector<Axis>{kVariable});
  options.kind.choose("spectral");
  REQUIRE(options.kind->axes() == std::vector<Axis>{kGrid});
  options.kind.choose("lead_time_decay");
  REQUIRE(options.kind->axes() == std::vector<Axis>{kTime});
  options.kind.choose("nan_mask_weights");
  REQUIRE(options.kind->axes() == std::vector<Axis>{kBatch, kGrid, kVariable});
}

TEST_CASE("every scaler has a name of its own, and its options read back as they were written",
          "[scaler_kinds]") {
  std::set<std::string> names;
  for (const auto& kind : ScalerKind::kinds()) {
    INFO(kind.name);
    REQUIRE(names.insert(kind.name).second);
    ScalerOptions scaler;
    scaler.kind.choose(kind.name);
    const config::Json written = config::write_object(config::fields_of(scaler));
    REQUIRE(written["kind"] == kind.name);
    ScalerOptions again;
    config::read_object(config::fields_of(again), written, "loss.named_scalers.own", {});
    REQUIRE(config::write_object(config::fields_of(again)) == written);
  }
}

TEST_CASE("the text on lists of scalers names those that need no name", "[scaler_kinds]") {
  LossOptions options;
  std::string text;
  for (const config::Field& field : config::fields_of(options))
    if (field.key == "scalers") text = field.doc.text;
  for (const auto& kind : ScalerKind::kinds()) {
    INFO(kind.name);
    const bool is_listed = text.find(concat(" ", kind.name, ", ")) != std::string::npos;
    REQUIRE(is_listed == !kind.make()->needs_name());
  }
}

TEST_CASE("a kind refuses options of others and lists its own", "[scaler_kinds]") {
  LossOptions options;
  const auto json = config::parse_json(
      R"({"named_scalers": {"own": {"kind": "lead_time_decay", "node_inverse": false}}})", "test");
  try {
    config::read(options, json, "loss", {});
    FAIL("no error");
  } catch (const ConfigError& error) {
    REQUIRE(error.path() == "loss.named_scalers.own.node_inverse");
    REQUIRE_THAT(error.hint(),
                 ContainsSubstring("the options of lead_time_decay are norm, lead_time"));
  }
}

TEST_CASE("settings of the section reach the scalers without a name", "[scaler_kinds]") {
  LossOptions options;
  config::read(options,
               config::parse_json(R"({"tendency": {"timestep": "12h"},
                                               "node_norm": "unit-mean"})",
                                  "test"),
               "loss", {});
  for (const char* name : {"stdev_tendency", "var_tendency"}) {
    const ScalerOptions scaler = options.scaler(name, "");
    const auto* first = scaler.kind.as<StdevTendencyKind>();
    const auto* second = scaler.kind.as<VarTendencyKind>();
    REQUIRE((first ? first->tendency : second->tendency).timestep == "12h");
  }
  REQUIRE(options.scaler("node_weights", "").kind.as<NodeWeightsKind>()->norm ==
          WeightNorm::kUnitMean);
  REQUIRE(options.scaler("time_steps", "").kind.as<TimeStepsKind>()->norm == WeightNorm::kUnitSum);
}
