// SPDX-License-Identifier: Apache-2.0
#include "train/output/step_rates.h"

#include <nlohmann/json.hpp>

namespace aifs::train {

void StepRates::add(const nlohmann::ordered_json& line) {
  const double samples = line.value("samples", 0.0);
  step_s_ += line.value("step_s", 0.0);
  samples_ += samples;
  forecast_steps_ += samples * line.value("rollout", 1.0);
}

nlohmann::ordered_json StepRates::take() {
  auto rates = nlohmann::ordered_json::object();
  if (step_s_ > 0.0) {
    rates["samples_per_s"] = samples_ / step_s_;
    const double flops = operations_.per_sample * forecast_steps_ / step_s_;
    if (flops > 0.0) rates["tflops_per_s"] = flops / 1e12;
    if (flops > 0.0 && operations_.peak_per_s > 0.0) rates["mfu"] = flops / operations_.peak_per_s;
  }
  step_s_ = samples_ = forecast_steps_ = 0.0;
  return rates;
}

}  // namespace aifs::train
