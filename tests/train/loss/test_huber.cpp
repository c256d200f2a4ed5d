// SPDX-License-Identifier: Apache-2.0
// The test of a loss, as docs/extending.md asks for: the formula against its closed form, and the
// way from the configuration to a loss and back.
#include "train/loss/huber.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "train/loss/loss_options.h"

using namespace aifs;
using namespace aifs::train;

namespace {

double error_at(const PointwiseError& error, double d) {
  return error.of(at::full({}, d, at::kDouble)).item<double>();
}

LossOptions huber_options(const std::string& text) {
  LossOptions options;
  config::read(options, config::parse_json(text, "test"), "loss", {});
  return options;
}

}  // namespace

TEST_CASE("Huber's loss changes from square to line at delta", "[huber]") {
  const PointwiseError error = huber_error(0.5);
  REQUIRE(error_at(error, 0.3) == Approx(0.5 * 0.09).epsilon(1e-14));
  REQUIRE(error_at(error, -2.0) == Approx(0.5 * (2.0 - 0.25)).epsilon(1e-14));
  REQUIRE(error_at(error, 0.5 - 1e-9) == Approx(error_at(error, 0.5 + 1e-9)).epsilon(1e-8));
}

TEST_CASE("a configuration makes Huber's loss, and its options read back as they were", "[huber]") {
  LossOptions options = huber_options(R"({"kind": "huber", "delta": 0.5, "scalers": []})");
  const auto* huber = options.kind.as<HuberKind>();
  REQUIRE(huber);
  REQUIRE(huber->delta == 0.5);
  const config::Json written = config::write_object(config::fields_of(options));
  REQUIRE(written["kind"] == "huber");
  REQUIRE(written["delta"] == 0.5);
  REQUIRE_FALSE(written.contains("alpha"));
  REQUIRE_NOTHROW(huber_options(written.dump()));

  const data::VariableTable variables({"t"}, {});
  const data::Statistics statistics{{0}, {1}, {0}, {1}};
  const std::map<int64_t, data::Statistics> tendencies;
  const graph::NodeSet nodes;
  const LossInputs inputs{
      .variables = variables, .statistics = statistics, .tendencies = tendencies, .nodes = nodes};
  const LossPtr loss =
      options.kind->make({inputs, "loss", [](int64_t) { return ElementaryOptions(); }});
  const at::Tensor error = at::full({1, 1, 1, 1, 1}, 2.0, at::kDouble);
  REQUIRE((*loss)(error, at::zeros_like(error)).item<double>() == Approx(0.5 * (2.0 - 0.25)));
}

TEST_CASE("delta of Huber's loss is positive, and has a former name", "[huber]") {
  REQUIRE(huber_options(R"({"kind": "huber", "huber_delta": 2})").kind.as<HuberKind>()->delta ==
          2.0);
  REQUIRE_THROWS_WITH(huber_options(R"({"kind": "huber", "delta": 0})"),
                      ContainsSubstring("loss.delta"));
  REQUIRE_THROWS_WITH(huber_options(R"({"kind": "huber", "delta": 1, "huber_delta": 2})"),
                      ContainsSubstring("former name of 'delta'"));
}
