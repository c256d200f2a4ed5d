// SPDX-License-Identifier: Apache-2.0
// Scores of one forecast field against the truth.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "verify/events.h"

namespace aifs::verify {

// Weighted means over the cells of a region, physical units. Of several members, error, absolute
// error, activity and correlation are those of their mean.
struct FieldScores {
  double squared_error = 0.0;
  double error = 0.0;  // forecast minus truth
  double absolute_error = 0.0;
  double persistence_squared_error = 0.0;       // of the truth at the start
  double activity = 0.0, truth_activity = 0.0;  // variance over the cells
  double spread = 0.0;                          // variance of the members (n - 1); 0 of one
  double crps = 0.0;      // fair: that of infinitely many such members; of one the absolute error
  double coverage = 0.0;  // share of the region's weight whose cells count
  // With a climatology: its squared error, and the correlation over the cells of the anomalies of
  // forecast and truth from it, less their means (NaN if one of them does not vary).
  double climatology_squared_error = 0.0, anomaly_correlation = 0.0;
  // (E + 1) of several members: how often so many of them are below the truth; adds up to 1.
  // Members that equal it are below in as many cases as above.
  std::vector<double> ranks = {};
  std::vector<EventScores> events = {};  // of each threshold
};

// The fields of a variable at one time. Cells where one of them is NaN do not count.
struct ComparedFields {
  std::span<const float> forecast;          // (E, N)
  std::span<const float> truth, start;      // (N)
  std::span<const float> climatology = {};  // (N), or empty
};

// Nothing if no cell counts. `weights`: (N), not negative.
std::optional<FieldScores> score_field(const ComparedFields& fields,
                                       std::span<const double> weights,
                                       std::span<const double> thresholds = {});

// The mean of scores of fields, each of which counts the same; `scores` is not empty.
FieldScores mean_of(std::span<const FieldScores* const> scores);

}  // namespace aifs::verify
