// SPDX-License-Identifier: Apache-2.0
#include "verify/field_scores.h"

#include <algorithm>
#include <cmath>

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
  if (values.size() == 1) return {values[0], 0.0, 0.0};
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

// What is added up over the cells of a region.
class Sums {
 public:
  Sums(const ComparedFields& fields, std::span<const double> thresholds)
      : fields_(fields), thresholds_(thresholds) {
    // Deviations from one value of the field: their squares lose no digits.
    const auto origin = static_cast<double>(fields.truth[0]);
    origin_ = std::isnan(origin) ? 0.0 : origin;
    scores_.events.resize(thresholds.size());
  }

  // Adds a cell whose values are known; sorts them.
  void add(double weight, size_t cell, std::vector<double>& values) {
    const auto wanted = static_cast<double>(fields_.truth[cell]);
    double distance = 0.0;
    for (const double value : values)
      distance += std::abs(value - wanted) / static_cast<double>(values.size());
    const Members members = members_of(values);
    const double error = members.mean - wanted;
    const double persistence = static_cast<double>(fields_.start[cell]) - wanted;
    total_ += weight;
    scores_.squared_error += weight * error * error;
    scores_.error += weight * error;
    scores_.absolute_error += weight * std::abs(error);
    scores_.persistence_squared_error += weight * persistence * persistence;
    scores_.spread += weight * members.variance;
    scores_.crps += weight * (distance - 0.5 * members.distance);
    values_.add(weight, members.mean - origin_, wanted - origin_);
    if (!fields_.climatology.empty()) {
      const auto usual = static_cast<double>(fields_.climatology[cell]);
      scores_.climatology_squared_error += weight * (usual - wanted) * (usual - wanted);
      anomalies_.add(weight, members.mean - usual, wanted - usual);
    }
    if (values.size() > 1) {
      scores_.ranks.resize(values.size() + 1, 0.0);
      add_rank(weight, values, wanted, scores_.ranks);
    }
    for (size_t k = 0; k < thresholds_.size(); ++k)
      scores_.events[k].add(weight, values, wanted, thresholds_[k]);
  }

  double total() const { return total_; }

  // `all`: weight of the region.
  FieldScores means(double all) && {
    for (double* sum : {&scores_.squared_error, &scores_.error, &scores_.absolute_error,
                        &scores_.persistence_squared_error, &scores_.spread, &scores_.crps,
                        &scores_.climatology_squared_error})
      *sum /= total_;
    for (double& rank : scores_.ranks)
      rank /= total_;
    for (EventScores& event : scores_.events)
      for (double* sum : {&event.hits, &event.false_alarms, &event.misses, &event.correct_negatives,
                          &event.brier})
        *sum /= total_;
    scores_.activity = values_.x_variance(total_);
    scores_.truth_activity = values_.y_variance(total_);
    if (!fields_.climatology.empty()) scores_.anomaly_correlation = anomalies_.correlation(total_);
    scores_.coverage = total_ / all;
    return std::move(scores_);
  }

 private:
  const ComparedFields& fields_;
  std::span<const double> thresholds_;
  double origin_ = 0.0, total_ = 0.0;
  FieldScores scores_;
  Moments values_, anomalies_;
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
  const size_t n = weights.size(), num_members = fields.forecast.size() / n;
  Sums sums(fields, thresholds);
  double all = 0.0;
  std::vector<double> values(num_members);
  for (size_t i = 0; i < n; ++i) {
    const double weight = weights[i];
    if (weight == 0.0) continue;
    all += weight;
    bool is_known = !std::isnan(fields.truth[i]) && !std::isnan(fields.start[i]) &&
                    (fields.climatology.empty() || !std::isnan(fields.climatology[i]));
    for (size_t e = 0; e < num_members; ++e) {
      values[e] = static_cast<double>(fields.forecast[e * n + i]);
      is_known = is_known && !std::isnan(values[e]);
    }
    if (is_known) sums.add(weight, i, values);
  }
  if (sums.total() == 0.0) return std::nullopt;
  return std::move(sums).means(all);
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
