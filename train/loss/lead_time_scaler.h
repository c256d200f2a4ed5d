// SPDX-License-Identifier: Apache-2.0
// Weights of output times that fall with the lead time: the scaler "lead_time_decay".
#pragma once

#include "train/loss/scaler_kind.h"

namespace aifs::train {

// Weight of an output time, from r = lead time / max_lead_time: linear 1 - decay r, exponential
// exp(-decay r); inverse: one minus that. Always divided by the sum over the output times.
enum class LeadTimeDecay { kLinear, kExponential };
struct LeadTimeDecayOptions {
  LeadTimeDecay kind = LeadTimeDecay::kLinear;
  double decay = 1.0;
  double max_lead_time_hours = 24.0;
  bool inverse = false;
  std::vector<double> hours;  // lead times of the output times; empty: multiples of the time step
  void bind(config::Binder& b);
  bool operator==(const LeadTimeDecayOptions&) const = default;
};

// (T): one per lead time, with sum 1; computed in fp32.
at::Tensor lead_time_weights(const std::vector<double>& lead_times_hours,
                             const LeadTimeDecayOptions& options);

struct LeadTimeDecayKind : WeightsKind {
  LeadTimeDecayOptions lead_time;

  void bind_settings(config::Binder& b) override;
  std::vector<Axis> axes() const override { return {kTime}; }
  const char* key_to_use() const override {
    return lead_time == LeadTimeDecayOptions() ? nullptr : "lead_time";
  }
  at::Tensor weights(const ScalerPlace& place) const override;
};

constexpr auto enum_table(LeadTimeDecay) {
  using enum LeadTimeDecay;
  return std::to_array<EnumName<LeadTimeDecay>>(
      {{kLinear, "linear"}, {kExponential, "exponential"}});
}

}  // namespace aifs::train
