// SPDX-License-Identifier: Apache-2.0
// Forecasts of an event, that a value reaches a threshold, against what came.
//
// Source: Jolliffe and Stephenson (2012), Forecast Verification, chapter 3.
#pragma once

#include <span>

namespace aifs::verify {

// Shares of the weight of all cells; they add up to 1. Of several members each is a forecast of its
// own, and shares are means over them.
struct EventScores {
  double hits = 0.0, false_alarms = 0.0, misses = 0.0, correct_negatives = 0.0;
  // Mean squared difference of the share of members with the event from 1 where it came, 0 else.
  double brier = 0.0;

  // Adds a cell. `values` of the members are not empty.
  void add(double weight, std::span<const double> values, double truth, double threshold);

  double base_rate() const;       // how often the event came
  double frequency_bias() const;  // forecast events for one that came
  double detection() const;       // probability of detection
  double false_alarm_ratio() const;
  double equitable_threat() const;  // 0: of chance, 1: perfect
  // All of these are NaN where they would be 0 / 0.
};

}  // namespace aifs::verify
