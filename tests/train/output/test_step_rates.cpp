// SPDX-License-Identifier: Apache-2.0
#include "train/output/step_rates.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using aifs::train::StepRates;
using Json = nlohmann::ordered_json;

TEST_CASE("rates are those of the steps since the last call", "[step_rates]") {
  StepRates rates({.per_sample = 2e12, .peak_per_s = 40e12});
  rates.add(Json{{"step_s", 1.0}, {"samples", 4}, {"rollout", 1}});
  rates.add(Json{{"step_s", 3.0}, {"samples", 4}, {"rollout", 3}});
  const Json two = rates.take();
  CHECK(two["samples_per_s"].get<double>() == Approx(2.0));
  CHECK(two["tflops_per_s"].get<double>() == Approx(2.0 * (4 + 12) / 4.0));
  CHECK(two["mfu"].get<double>() == Approx(0.2));
  CHECK(rates.take().empty());
  rates.add(Json{{"step_s", 1.0}, {"samples", 8}});
  CHECK(rates.take()["tflops_per_s"].get<double>() == Approx(16.0));
}

TEST_CASE("what is not known is left out", "[step_rates]") {
  StepRates unplanned({});
  unplanned.add(Json{{"step_s", 2.0}, {"samples", 4}});
  CHECK(unplanned.take() == Json{{"samples_per_s", 2.0}});
  StepRates without_machine({.per_sample = 1e12});
  without_machine.add(Json{{"step_s", 2.0}, {"samples", 4}});
  const Json rates = without_machine.take();
  CHECK(rates.contains("tflops_per_s"));
  CHECK_FALSE(rates.contains("mfu"));
}
