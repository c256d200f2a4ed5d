// SPDX-License-Identifier: Apache-2.0
#include "verify/events.h"

#include <cmath>

namespace aifs::verify {

namespace {

double ratio(double part, double whole) {
  return whole == 0.0 ? NAN : part / whole;
}

}  // namespace

void EventScores::add(double weight, std::span<const double> values, double truth,
                      double threshold) {
  double share = 0.0;
  for (const double value : values)
    share += value >= threshold ? 1.0 : 0.0;
  share /= static_cast<double>(values.size());
  const bool came = truth >= threshold;
  (came ? hits : false_alarms) += weight * share;
  (came ? misses : correct_negatives) += weight * (1.0 - share);
  const double error = share - (came ? 1.0 : 0.0);
  brier += weight * error * error;
}

double EventScores::base_rate() const {
  return ratio(hits + misses, hits + misses + false_alarms + correct_negatives);
}

double EventScores::frequency_bias() const {
  return ratio(hits + false_alarms, hits + misses);
}

double EventScores::detection() const {
  return ratio(hits, hits + misses);
}

double EventScores::false_alarm_ratio() const {
  return ratio(false_alarms, hits + false_alarms);
}

double EventScores::equitable_threat() const {
  const double all = hits + misses + false_alarms + correct_negatives;
  const double by_chance = ratio((hits + misses) * (hits + false_alarms), all);
  return ratio(hits - by_chance, hits + misses + false_alarms - by_chance);
}

}  // namespace aifs::verify
