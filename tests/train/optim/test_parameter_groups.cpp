// SPDX-License-Identifier: Apache-2.0
#include "train/optim/parameter_groups.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "train/optim/optimizer.h"

using namespace aifs;
using namespace aifs::train;

namespace {

struct Network {
  model::ParameterSet set{at::kDouble, 1};
  Network() {
    for (const char* name : {"encoder.0.weight", "encoder.0.bias", "processor.weight", "decoder.w"})
      set.add(name, {3}, model::Init::ones());
    set.flatten(at::kCPU);
  }
};

}  // namespace

TEST_CASE("patterns are whole names, parts of the network, or have stars", "[parameter_groups]") {
  REQUIRE(matches_pattern("encoder.0.bias", "encoder.0.bias"));
  REQUIRE(matches_pattern("encoder.0.bias", "encoder"));
  REQUIRE_FALSE(matches_pattern("encoder.0.bias", "enc"));
  REQUIRE(matches_pattern("encoder.0.bias", "*.bias"));
  REQUIRE(matches_pattern("encoder.0.bias", "enc*b*s"));
  REQUIRE_FALSE(matches_pattern("encoder.0.bias", "*.weight"));
  REQUIRE(matches_pattern("a", "*"));
}

TEST_CASE("frozen parameters stay, groups have their own rate and decay", "[parameter_groups]") {
  Network network;
  const std::vector<ParameterGroupOptions> groups{
      {.parameters = {"*.bias"}, .lr_factor = 0.5, .weight_decay = 0.0},
      {.parameters = {"decoder"}, .lr_factor = 2.0}};
  const auto ranges = parameter_ranges(network.set, groups, {"processor"}, 0.1);
  REQUIRE(ranges.size() == 3);
  AdamW optimizer(network.set, {.weight_decay = 0.1});
  optimizer.set_ranges(ranges);
  network.set.flat_gradients().fill_(1.0);
  optimizer.step(0.01);
  const auto moved = [&](const char* name) {
    return 1.0 - network.set.at(name).tensor.detach()[0].item<double>();
  };
  // The first step of AdamW has size lr, after a decay of lr * wd.
  REQUIRE(std::abs(moved("encoder.0.weight") - (0.01 + 0.001)) <= 1e-8);
  REQUIRE(std::abs(moved("encoder.0.bias") - 0.005) <= 1e-8);
  REQUIRE(moved("processor.weight") == 0.0);
  REQUIRE(std::abs(moved("decoder.w") - (0.02 + 0.002)) <= 1e-8);
}

TEST_CASE("alike parameters are one range", "[parameter_groups]") {
  Network network;
  const auto ranges = parameter_ranges(network.set, {}, {}, 0.1);
  REQUIRE(ranges.size() == 1);
  REQUIRE(ranges[0].end == network.set.flat_values().numel());
}

TEST_CASE("a pattern that fits nothing is refused", "[parameter_groups]") {
  Network network;
  REQUIRE_THROWS_WITH(parameter_ranges(network.set, {}, {"processor", "decodr"}, 0.1),
                      ContainsSubstring("optimizer.freeze.1"));
  REQUIRE_THROWS_AS(parameter_ranges(network.set, {{.parameters = {"x*"}}}, {}, 0.1), ConfigError);
  REQUIRE_THROWS_AS(parameter_ranges(network.set, {}, {"*"}, 0.1), ConfigError);
}

TEST_CASE("no gradients are computed for frozen parameters", "[parameter_groups]") {
  Network network;
  freeze(network.set, {"encoder"});
  REQUIRE_FALSE(network.set.at("encoder.0.bias").tensor.requires_grad());
  REQUIRE(network.set.at("decoder.w").tensor.requires_grad());
}
