// SPDX-License-Identifier: Apache-2.0
#include "train/loss/lead_time_scaler.h"

#include <ATen/ATen.h>

namespace aifs::train {

void LeadTimeDecayOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"how the weight falls with the lead time"});
  b.number("decay", decay, {.min = 0.0}, {"how fast it falls"});
  b.number("max_lead_time_hours", max_lead_time_hours, {.min = 1e-9},
           {"lead time that counts as 1", "h"});
  b.boolean("inverse", inverse, {"let it grow instead"});
  b.number_list("hours", hours, {.min = 0.0},
                {"lead times of the output times; empty: multiples of data.timestep", "h"});
}

at::Tensor lead_time_weights(const std::vector<double>& lead_times_hours,
                             const LeadTimeDecayOptions& options) {
  const at::Tensor relative = weights_of(lead_times_hours) / options.max_lead_time_hours;
  const at::Tensor decayed = options.decay * relative;
  at::Tensor weights;
  switch (options.kind) {
    case LeadTimeDecay::kLinear:
      weights = options.inverse ? decayed : 1.0 - decayed;
      break;
    case LeadTimeDecay::kExponential:
      weights = at::exp(-decayed);
      if (options.inverse) weights = 1.0 - weights;
      break;
  }
  return normalise_weights(weights, WeightNorm::kUnitSum);
}

void LeadTimeDecayKind::bind_settings(config::Binder& b) {
  b.section("lead_time", lead_time, {"weights by lead time"});
}

at::Tensor LeadTimeDecayKind::weights(const ScalerPlace& place) const {
  std::vector<double> hours = lead_time.hours;
  for (int64_t t = 1; lead_time.hours.empty() && t <= place.inputs.times_out; ++t)
    hours.push_back(static_cast<double>(t * place.inputs.timestep_s) / 3600.0);
  return lead_time_weights(hours, lead_time);
}

}  // namespace aifs::train
