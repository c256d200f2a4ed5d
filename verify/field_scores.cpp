// SPDX-License-Identifier: Apache-2.0
#include "verify/field_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace aifs::verify {

namespace {

// Members of one cell: their mean, variance, and distances from each other.
struct Members {
  double mean = 0.0, variance = 0.0;
  double distance = 0.0;  // mean over pairs of different members
};

// Sorts `values`, which are not empty.
Members members_of(std::vector<double>& values) {
  Members members;
  const auto n = static_cast<double>(values.size());
  for (const double value : values)
    members.mean += value / n;
  std::sort(values.begin(), values.end());
  for (size_t i = 0; i < values.size(); ++i) {
    const double deviation = values[i] - members.mean;
    members.variance += deviation * deviation / (n - 1);
    // The i-th smallest is the larger of i pairs and the smaller of n - 1 - i.
    members.distance += (2.0 * static_cast<double>(i) - n + 1) * values[i] / (n * (n - 1) / 2);
  }
  return members;
}

// Weighted sums of two variables, from which variances and their correlation follow.
struct Moments {
  double x = 0.0, y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;

  void add(double weight, double a, double b) {
    x += weight * a, y += weight * b;
    xx += weight * a * a, yy += weight * b * b, xy += weight * a * b;
  }
  double x_variance(double total) const {
    return std::max(0.0, xx / total - x / total * (x / total));
  }
  double y_variance(double total) const {
    return std::max(0.0, yy / total - y / total * (y / total));
  }
  double correlation(double total) const {
    const double covariance = xy / total - x / total * (y / total);
    const double product = x_variance(total) * y_variance(total);
    return product > 0.0 ? covariance / std::sqrt(product) : NAN;
  }
};

// Adds to the ranks a cell with these members, ascending.
void add_rank(double weight, const std::vector<double>& members, double truth,
              std::vector<double>& ranks) {
  const auto [first, last] = std::equal_range(members.begin(), members.end(), truth);
  const auto equal = static_cast<double>(last - first);
  for (auto place = first - members.begin(); place <= last - members.begin(); ++place)
    ranks[static_cast<size_t>(place)] += weight / (equal + 1.0);
}

// Sums that every cell adds to. Loops keep them in registers.
struct CellSums {
  double total = 0.0, squared_error = 0.0, error = 0.0, absolute_error = 0.0;
  double persistence = 0.0, climatology = 0.0;
  Moments values, anomalies;

  // Deviations from `origin`, one value of the field: their squares lose no digits.
  void add(double weight, double mean, double wanted, double start, double origin) {
    const double difference = mean - wanted, change = start - wanted;
    total += weight;
    squared_error += weight * difference * difference;
    error += weight * difference;
    absolute_error += weight * std::abs(difference);
    persistence += weight * change * change;
    values.add(weight, mean - origin, wanted - origin);
  }
  void add_anomalies(double weight, double mean, double wanted, double usual) {
    climatology += weight * (usual - wanted) * (usual - wanted);
    anomalies.add(weight, mean - usual, wanted - usual);
  }
};

// What is added up over the cells of a region.
class Sums {
 public:
  Sums(const ComparedFields& fields, std::span<const double> thresholds)
      : fields_(fields), thresholds_(thresholds) {
    const auto origin = static_cast<double>(fields.truth[0]);
    origin_ = std::isnan(origin) ? 0.0 : origin;
    scores_.events.resize(thresholds.size());
  }

  // Adds all cells of a single forecast.
  void add_single(std::span<const double> weights) {
    CellSums sums;
    const bool has_climatology = !fields_.climatology.empty();
    for (size_t i = 0; i < weights.size(); ++i) {
      const double weight = weights[i];
      if (weight == 0.0) continue;
      all_ += weight;
      const auto value = static_cast<double>(fields_.forecast[i]);
      if (std::isnan(value) || !is_known(i)) continue;
      const auto wanted = static_cast<double>(fields_.truth[i]);
      sums.add(weight, value, wanted, static_cast<double>(fields_.start[i]), origin_);
      if (has_climatology)
        sums.add_anomalies(weight, value, wanted, static_cast<double>(fields_.climatology[i]));
      for (size_t k = 0; k < thresholds_.size(); ++k)
        scores_.events[k].add(weight, std::span(&value, 1), wanted, thresholds_[k]);
    }
    sums_ = sums;
    scores_.crps = sums.absolute_error;
  }

  // Adds all cells of several members.
  void add_members(std::span<const double> weights, size_t num_members) {
    std::vector<double> values(num_members);
    scores_.ranks.resize(num_members + 1, 0.0);
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0.0) continue;
      all_ += weights[i];
      bool counts = is_known(i);
      for (size_t e = 0; e < num_members; ++e) {
        values[e] = static_cast<double>(fields_.forecast[e * weights.size() + i]);
        counts = counts && !std::isnan(values[e]);
      }
      if (counts) add_cell(weights[i], i, values);
    }
  }

  double total() const { return sums_.total; }

  FieldScores means() && {
    const double total = sums_.total;
    scores_.squared_error = sums_.squared_error / total;
    scores_.error = sums_.error / total;
    scores_.absolute_error = sums_.absolute_error / total;
    scores_.persistence_squared_error = sums_.persistence / total;
    scores_.climatology_squared_error = sums_.climatology / total;
    scores_.spread /= total;
    scores_.crps /= total;
    for (double& rank : scores_.ranks)
      rank /= total;
    for (EventScores& event : scores_.events)
      for (double* sum : {&event.hits, &event.false_alarms, &event.misses, &event.correct_negatives,
                          &event.brier})
        *sum /= total;
    scores_.activity = sums_.values.x_variance(total);
    scores_.truth_activity = sums_.values.y_variance(total);
    if (!fields_.climatology.empty())
      scores_.anomaly_correlation = sums_.anomalies.correlation(total);
    scores_.coverage = total / all_;
    return std::move(scores_);
  }

 private:
  // True if all is known of a cell but the forecast.
  bool is_known(size_t cell) const {
    return !std::isnan(fields_.truth[cell]) && !std::isnan(fields_.start[cell]) &&
           (fields_.climatology.empty() || !std::isnan(fields_.climatology[cell]));
  }

  // Sorts the values.
  void add_cell(double weight, size_t cell, std::vector<double>& values) {
    const auto wanted = static_cast<double>(fields_.truth[cell]);
    double distance = 0.0;
    for (const double value : values)
      distance += std::abs(value - wanted) / static_cast<double>(values.size());
    const Members members = members_of(values);
    sums_.add(weight, members.mean, wanted, static_cast<double>(fields_.start[cell]), origin_);
    if (!fields_.climatology.empty())
      sums_.add_anomalies(weight, members.mean, wanted,
                          static_cast<double>(fields_.climatology[cell]));
    scores_.spread += weight * members.variance;
    scores_.crps += weight * (distance - 0.5 * members.distance);
    add_rank(weight, values, wanted, scores_.ranks);
    for (size_t k = 0; k < thresholds_.size(); ++k)
      scores_.events[k].add(weight, values, wanted, thresholds_[k]);
  }

  const ComparedFields& fields_;
  std::span<const double> thresholds_;
  double origin_ = 0.0, all_ = 0.0;  // weight of the region
  CellSums sums_;
  FieldScores scores_;
};

constexpr double FieldScores::*kFigures[] = {&FieldScores::squared_error,
                                             &FieldScores::error,
                                             &FieldScores::absolute_error,
                                             &FieldScores::persistence_squared_error,
                                             &FieldScores::activity,
                                             &FieldScores::truth_activity,
                                             &FieldScores::spread,
                                             &FieldScores::crps,
                                             &FieldScores::coverage,
                                             &FieldScores::climatology_squared_error,
                                             &FieldScores::anomaly_correlation};
constexpr double EventScores::*kEventFigures[] = {
    &EventScores::hits, &EventScores::false_alarms, &EventScores::misses,
    &EventScores::correct_negatives, &EventScores::brier};

}  // namespace

std::optional<FieldScores> score_field(const ComparedFields& fields,
                                       std::span<const double> weights,
                                       std::span<const double> thresholds) {
  const size_t num_members = fields.forecast.size() / weights.size();
  Sums sums(fields, thresholds);
  if (num_members == 1)
    sums.add_single(weights);
  else
    sums.add_members(weights, num_members);
  if (sums.total() == 0.0) return std::nullopt;
  return std::move(sums).means();
}

FieldScores mean_of(std::span<const FieldScores* const> scores) {
  FieldScores mean;
  mean.ranks.resize(scores.front()->ranks.size(), 0.0);
  mean.events.resize(scores.front()->events.size());
  const double share = 1.0 / static_cast<double>(scores.size());
  for (const FieldScores* one : scores) {
    for (const auto figure : kFigures)
      mean.*figure += one->*figure;
    for (size_t r = 0; r < mean.ranks.size(); ++r)
      mean.ranks[r] += share * one->ranks[r];
    for (size_t k = 0; k < mean.events.size(); ++k)
      for (const auto figure : kEventFigures)
        mean.events[k].*figure += share * one->events[k].*figure;
  }
  for (const auto figure : kFigures)
    mean.*figure /= static_cast<double>(scores.size());
  return mean;
}

}  // namespace aifs::verify
