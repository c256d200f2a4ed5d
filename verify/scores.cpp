// SPDX-License-Identifier: Apache-2.0
#include "verify/scores.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/check.h"
#include "core/time.h"
#include "data/fields/time_axis.h"

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
  if (values.size() == 1) return members;
  std::sort(values.begin(), values.end());
  for (size_t i = 0; i < values.size(); ++i) {
    const double deviation = values[i] - members.mean;
    members.variance += deviation * deviation / (n - 1);
    // The i-th smallest is the larger of i pairs and the smaller of n - 1 - i.
    members.distance += (2.0 * static_cast<double>(i) - n + 1) * values[i] / (n * (n - 1) / 2);
  }
  return members;
}

// Mean and mean square with weights, from which the variance over the cells follows.
struct Moments {
  double sum = 0.0, squares = 0.0;
  void add(double weight, double value) {
    sum += weight * value;
    squares += weight * value * value;
  }
  double variance(double total) const {
    const double mean = sum / total;
    return std::max(0.0, squares / total - mean * mean);
  }
};

}  // namespace

std::optional<FieldScores> score_field(const FieldTriple& fields, std::span<const double> weights) {
  const size_t n = weights.size(), num_members = fields.forecast.size() / n;
  FieldScores scores;
  double total = 0.0;
  Moments forecast, truth;
  std::vector<double> values(num_members);
  for (size_t i = 0; i < n; ++i) {
    const double weight = weights[i];
    if (weight == 0.0) continue;
    bool is_known = !std::isnan(fields.truth[i]) && !std::isnan(fields.start[i]);
    for (size_t e = 0; e < num_members; ++e) {
      values[e] = static_cast<double>(fields.forecast[e * n + i]);
      is_known = is_known && !std::isnan(values[e]);
    }
    if (!is_known) continue;
    const auto wanted = static_cast<double>(fields.truth[i]);
    const Members members = members_of(values);
    const double error = members.mean - wanted;
    const double persistence = static_cast<double>(fields.start[i]) - wanted;
    double distance = 0.0;
    for (const double value : values)
      distance += std::abs(value - wanted) / static_cast<double>(num_members);
    total += weight;
    scores.squared_error += weight * error * error;
    scores.error += weight * error;
    scores.absolute_error += weight * std::abs(error);
    scores.persistence_squared_error += weight * persistence * persistence;
    scores.spread += weight * members.variance;
    scores.crps += weight * (distance - 0.5 * members.distance);
    // Deviations from one value of the field: their squares lose no digits.
    const auto origin = static_cast<double>(fields.truth[0]);
    const double from = std::isnan(origin) ? 0.0 : origin;
    forecast.add(weight, members.mean - from);
    truth.add(weight, wanted - from);
  }
  if (total == 0.0) return std::nullopt;
  for (double* sum : {&scores.squared_error, &scores.error, &scores.absolute_error,
                      &scores.persistence_squared_error, &scores.spread, &scores.crps})
    *sum /= total;
  scores.activity = forecast.variance(total);
  scores.truth_activity = truth.variance(total);
  return scores;
}

std::vector<int64_t> cells_in(const data::DatasetInfo& info, const ForecastReader& forecast) {
  std::vector<int64_t> cells;
  int64_t at = 0;
  for (int64_t i = 0; i < forecast.num_cells(); ++i) {
    const double latitude = forecast.latitudes_deg()[static_cast<size_t>(i)];
    const double longitude = forecast.longitudes_deg()[static_cast<size_t>(i)];
    const auto is_same = [&](int64_t cell) {
      return info.latitudes_deg[static_cast<size_t>(cell)] == latitude &&
             info.longitudes_deg[static_cast<size_t>(cell)] == longitude;
    };
    while (at < info.num_nodes() && !is_same(at))
      ++at;
    if (at == info.num_nodes()) {
      throw DataError(concat("'", forecast.path(), "': its cell ", i, " at ", latitude, " N ",
                             longitude, " E is none of '", info.name, "', or in another order"),
                      "verify forecasts against the dataset that they started from, or one on the "
                      "same grid");
    }
    cells.push_back(at++);
  }
  return cells;
}

Truth::Truth(const data::Dataset& dataset, const ForecastReader& forecast,
             const std::vector<std::string>& variables)
    : dataset_(dataset),
      path_(forecast.path()),
      latitudes_deg_(forecast.latitudes_deg()),
      longitudes_deg_(forecast.longitudes_deg()),
      cells_(cells_in(dataset.info(), forecast)) {
  for (const std::string& name : variables)
    columns_.push_back(dataset.info().column(name));
}

void Truth::check_cells(const ForecastReader& forecast) const {
  if (forecast.latitudes_deg() == latitudes_deg_ && forecast.longitudes_deg() == longitudes_deg_)
    return;
  throw DataError(concat("'", forecast.path(), "' and '", path_, "' have different cells"),
                  "verify forecasts of one grid at a time");
}

std::shared_ptr<const std::vector<float>> Truth::at(int64_t date_s) {
  constexpr size_t kMostBytes = size_t{2} << 30;
  if (const auto kept = kept_.find(date_s); kept != kept_.end()) return kept->second;
  auto fields = read(date_s);
  const size_t bytes = std::max<size_t>(1, columns_.size() * cells_.size() * sizeof(float));
  while (!order_.empty() && (order_.size() + 1) * bytes > kMostBytes) {
    kept_.erase(order_.front());
    order_.pop_front();
  }
  kept_[date_s] = fields;
  order_.push_back(date_s);
  return fields;
}

std::shared_ptr<const std::vector<float>> Truth::read(int64_t date_s) {
  const data::DatasetInfo& info = dataset_.info();
  const int64_t row = data::find_row(info.dates_s, info.missing_rows, date_s);
  if (row < 0) return nullptr;
  const auto all = static_cast<size_t>(info.num_nodes());
  std::vector<float> fields(static_cast<size_t>(info.ensemble_size) * columns_.size() * all);
  data::read_fields(dataset_, row, {0, info.num_nodes()}, columns_, scratch_, fields.data());
  auto chosen = std::make_shared<std::vector<float>>();
  chosen->reserve(columns_.size() * cells_.size());
  for (size_t v = 0; v < columns_.size(); ++v)
    for (const int64_t cell : cells_)
      chosen->push_back(fields[v * all + static_cast<size_t>(cell)]);
  return chosen;
}

namespace {

size_t lead_time_in(const ForecastReader& forecast, int64_t lead_s) {
  const std::vector<int64_t>& known = forecast.lead_times_s();
  const auto found = std::find(known.begin(), known.end(), lead_s);
  if (found == known.end())
    throw DataError(concat("'", forecast.path(), "' has no fields at ", format_lead_time(lead_s)),
                    "choose lead times that all forecasts have: --lead-times");
  return static_cast<size_t>(found - known.begin());
}

}  // namespace

ForecastScores score_forecast(const ForecastReader& forecast, Truth& truth,
                              const ScoredParts& parts) {
  truth.check_cells(forecast);
  ForecastScores result{forecast.start_s(), {}, 0};
  result.scores.resize(parts.size());
  std::vector<std::vector<double>> weights;
  for (const Region& region : parts.regions)
    weights.push_back(region_weights(region, forecast.latitudes_deg(), forecast.longitudes_deg()));
  const auto n = static_cast<size_t>(forecast.num_cells());
  const auto start = truth.at(forecast.start_s());
  std::vector<float> values(static_cast<size_t>(forecast.num_members()) * n);
  for (size_t t = 0; t < parts.lead_times_s.size(); ++t) {
    const size_t lead = lead_time_in(forecast, parts.lead_times_s[t]);
    const auto wanted = truth.at(forecast.start_s() + parts.lead_times_s[t]);
    if (!wanted || !start) {
      ++result.num_without_truth;
      continue;
    }
    for (size_t v = 0; v < parts.variables.size(); ++v) {
      forecast.read(parts.variables[v], lead, values);
      const FieldTriple triple{values, std::span(*wanted).subspan(v * n, n),
                               std::span(*start).subspan(v * n, n)};
      for (size_t r = 0; r < weights.size(); ++r)
        result.scores[parts.place(v, t, r)] = score_field(triple, weights[r]);
    }
  }
  return result;
}

std::vector<MeanScores> mean_scores(std::span<const ForecastScores> forecasts, size_t num_parts) {
  constexpr double FieldScores::*kFigures[] = {
      &FieldScores::squared_error,  &FieldScores::error,
      &FieldScores::absolute_error, &FieldScores::persistence_squared_error,
      &FieldScores::activity,       &FieldScores::truth_activity,
      &FieldScores::spread,         &FieldScores::crps};
  std::vector<MeanScores> means(num_parts);
  for (const ForecastScores& forecast : forecasts) {
    for (size_t i = 0; i < num_parts; ++i) {
      if (!forecast.scores[i]) continue;
      ++means[i].num_forecasts;
      for (const auto figure : kFigures)
        means[i].mean.*figure += (*forecast.scores[i]).*figure;
    }
  }
  for (MeanScores& scores : means)
    for (const auto figure : kFigures)
      if (scores.num_forecasts > 0)
        scores.mean.*figure /= static_cast<double>(scores.num_forecasts);
  return means;
}

}  // namespace aifs::verify
