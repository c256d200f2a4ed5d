// SPDX-License-Identifier: Apache-2.0
#include "train/nonfinite.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <limits>

#include "core/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::train;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Network {
  model::ParameterSet set{at::kFloat, 1};
  at::Tensor first, second;
  Network() {
    first = set.add("first.weight", {2, 2}, model::Init::ones());
    second = set.add("second.weight", {2, 2}, model::Init::ones());
    set.flatten(at::kCPU);
  }
  void run(const at::Tensor& x) const {
    at::linear(at::log(at::linear(x, set.at("first.weight").tensor)),
               set.at("second.weight").tensor);
  }
};

}  // namespace

TEST_CASE("the first bad value of a field is named by variable, level and node", "[nonfinite]") {
  at::Tensor field = at::zeros({2, 1, 1, 3, 2}, at::kFloat);
  const std::vector<double> lat{10.0, -20.5, 0.0}, lon{0.0, 30.0, 60.0};
  const FieldPlaces places{{"z_500", "tp"}, lat, lon, 100};
  REQUIRE(first_bad_value(field, "prediction", places).empty());
  field[1][0][0][1][0] = kNan;
  field[1][0][0][2][1] = std::numeric_limits<double>::infinity();
  const std::string text = first_bad_value(field, "prediction", places);
  REQUIRE(
      text ==
      "prediction: variable z_500 (level 500) is nan in sample 1, time 0, member 0, at node 101 "
      "(20.5 S, 30 E)");
}

TEST_CASE("bad weights and gradients are named", "[nonfinite]") {
  const Network network;
  const at::Tensor& gradients = network.set.flat_gradients();
  const std::vector<OwnPart> parts{{.values = network.set.flat_values(), .gradients = gradients}};
  REQUIRE(are_finite({gradients}));
  REQUIRE(first_bad_gradient(network.set, parts).empty());
  network.set.gradient(network.set.at("second.weight"))[1][0] = kNan;
  REQUIRE_FALSE(are_finite({gradients}));
  REQUIRE(first_bad_gradient(network.set, parts) ==
          "gradient of 'second.weight' is nan at element 2 of [2, 2]");
  REQUIRE(first_bad_weight(network.set).empty());
}

TEST_CASE("the operation that makes the first bad value is named", "[nonfinite]") {
  const at::NoGradGuard no_grad;
  const Network network;
  REQUIRE(first_bad_operation(network.set, [&] { network.run(at::ones({1, 2})); }).empty());
  const std::string found = first_bad_operation(network.set, [&] {
    network.run(-at::ones({1, 2}));
  });
  REQUIRE_THAT(found, ContainsSubstring("aten::log"));
  REQUIRE_THAT(found, ContainsSubstring("'first.weight'"));
}

TEST_CASE("a dump holds the batch and the report", "[nonfinite]") {
  const test::TemporaryFolder folder;
  data::Batch batch;
  batch.values = at::arange(4, at::kFloat).reshape({1, 1, 1, 2, 2});
  batch.anchors = {7};
  write_dump(folder.path() / "dump", batch, "what went wrong");
  const SafetensorsFile file(folder.path() / "dump" / "batch.safetensors");
  REQUIRE(file.doubles("values") == std::vector<double>{0, 1, 2, 3});
  REQUIRE(file.integers("anchors") == std::vector<int64_t>{7});
  REQUIRE(read_file(folder.path() / "dump" / "report.txt") == "what went wrong\n");
}
