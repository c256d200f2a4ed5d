// SPDX-License-Identifier: Apache-2.0
#include "verify/station_scores.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "core/time.h"
#include "graph/base/kd_tree.h"
#include "verify/degrees.h"
#include "verify/table_text.h"

namespace aifs::verify {

namespace {

using Json = nlohmann::ordered_json;

graph::Point<double> unit_vector(double latitude_deg, double longitude_deg) {
  const double lat = latitude_deg * kRadiansOfDegree, lon = longitude_deg * kRadiansOfDegree;
  return {std::cos(lat) * std::cos(lon), std::cos(lat) * std::sin(lon), std::sin(lat)};
}

// Angle on the sphere of a squared chord.
double angle_of(double chord2) {
  return 2.0 * std::asin(std::min(1.0, 0.5 * std::sqrt(chord2)));
}

size_t place_of(const StationSetup& setup, size_t variable, size_t lead_time, size_t region) {
  return (variable * setup.lead_times_s.size() + lead_time) * setup.regions.size() + region;
}

void add(const FieldScores& scores, double count, StationSum& sum) {
  sum.num_observations += count;
  for (const auto figure : {&FieldScores::squared_error, &FieldScores::error,
                            &FieldScores::absolute_error, &FieldScores::spread, &FieldScores::crps})
    sum.sum.*figure += count * scores.*figure;
}

FieldScores mean_of(const StationSum& sum) {
  FieldScores mean = sum.sum;
  for (const auto figure : {&FieldScores::squared_error, &FieldScores::error,
                            &FieldScores::absolute_error, &FieldScores::spread, &FieldScores::crps})
    mean.*figure /= sum.num_observations;
  return mean;
}

// The values of a forecast at the stations, (E, S).
std::vector<float> at_stations(const ForecastReader& forecast, const std::string& variable,
                               size_t lead_time, const PointMap& map) {
  const auto n = static_cast<size_t>(forecast.num_cells());
  std::vector<float> fields(static_cast<size_t>(forecast.num_members()) * n), values;
  forecast.read(variable, lead_time, fields);
  for (size_t first = 0; first < fields.size(); first += n) {
    const std::vector<float> own = map(std::span(fields).subspan(first, n));
    values.insert(values.end(), own.begin(), own.end());
  }
  return values;
}

}  // namespace

PointMap::PointMap(const ForecastReader& forecast, const std::vector<Station>& stations,
                   PointMethod method) {
  std::vector<graph::Point<double>> points;
  for (size_t i = 0; i < forecast.latitudes_deg().size(); ++i)
    points.push_back(unit_vector(forecast.latitudes_deg()[i], forecast.longitudes_deg()[i]));
  const graph::KdTree<double> tree(points);
  std::vector<graph::Neighbour> near, around;
  for (const Station& station : stations) {
    tree.nearest(unit_vector(station.latitude_deg, station.longitude_deg), 4, near);
    tree.nearest(points[static_cast<size_t>(near.front().index)], 5, around);
    std::vector<Share>& shares = shares_.emplace_back();
    if (near.front().distance2 > around.back().distance2) {
      ++num_outside_;
      continue;
    }
    const bool is_at_cell = angle_of(near.front().distance2) < 1e-9;
    if (method == PointMethod::kNearest || is_at_cell) near.resize(1);
    double total = 0.0;
    for (const graph::Neighbour& one : near) {
      const double weight = near.size() == 1 ? 1.0 : 1.0 / angle_of(one.distance2);
      shares.push_back({static_cast<size_t>(one.index), weight});
      total += weight;
    }
    for (Share& share : shares)
      share.weight /= total;
  }
}

std::vector<float> PointMap::operator()(std::span<const float> field) const {
  std::vector<float> values;
  for (const std::vector<Share>& shares : shares_) {
    double value = shares.empty() ? NAN : 0.0;
    for (const Share& share : shares)
      value += share.weight * static_cast<double>(field[share.cell]);
    values.push_back(static_cast<float>(value));
  }
  return values;
}

std::vector<StationSum> make_station_sums(const StationSetup& setup) {
  return std::vector<StationSum>(setup.observations.variables.size() * setup.lead_times_s.size() *
                                 setup.regions.size());
}

void add_forecast(const ForecastReader& forecast, const StationSetup& setup,
                  std::vector<StationSum>& sums) {
  const Observations& observations = setup.observations;
  const size_t num_stations = observations.stations.size();
  std::vector<std::vector<double>> weights;
  for (const Region& region : setup.regions) {
    weights.emplace_back();
    for (const Station& station : observations.stations)
      weights.back().push_back(region.contains(station.latitude_deg, station.longitude_deg) ? 1.0
                                                                                            : 0.0);
  }
  for (size_t t = 0; t < setup.lead_times_s.size(); ++t) {
    const size_t lead = lead_time_in(forecast, setup.lead_times_s[t]);
    const auto found = observations.values.find(forecast.start_s() + setup.lead_times_s[t]);
    if (found == observations.values.end()) continue;
    run_on_threads(
        static_cast<int64_t>(observations.variables.size()), setup.threads, [&](int64_t item) {
          const auto v = static_cast<size_t>(item);
          const auto values = at_stations(forecast, observations.variables[v], lead, setup.map);
          const auto truth = std::span(found->second).subspan(v * num_stations, num_stations);
          for (size_t r = 0; r < weights.size(); ++r) {
            const auto scores = score_field({values, truth, truth}, weights[r]);
            if (!scores) continue;
            double all = 0.0;
            for (const double weight : weights[r])
              all += weight;
            add(*scores, std::round(scores->coverage * all), sums[place_of(setup, v, t, r)]);
          }
        });
  }
}

std::vector<Json> station_rows(const StationSetup& setup, const std::vector<StationSum>& sums,
                               int64_t num_members) {
  std::vector<Json> rows;
  for (size_t v = 0; v < setup.observations.variables.size(); ++v) {
    for (size_t t = 0; t < setup.lead_times_s.size(); ++t) {
      for (size_t r = 0; r < setup.regions.size(); ++r) {
        const StationSum& sum = sums[place_of(setup, v, t, r)];
        if (sum.num_observations == 0.0) continue;
        const FieldScores mean = mean_of(sum);
        Json row{{"variable", setup.observations.variables[v]},
                 {"lead_time_h", static_cast<double>(setup.lead_times_s[t]) / 3600.0},
                 {"region", setup.regions[r].name},
                 {"observations", static_cast<int64_t>(sum.num_observations)},
                 {"rmse", std::sqrt(mean.squared_error)},
                 {"bias", mean.error},
                 {"mae", mean.absolute_error}};
        if (num_members > 1) {
          const auto members = static_cast<double>(num_members);
          row["spread"] = std::sqrt(mean.spread);
          row["crps"] = mean.crps;
          const double ratio =
              std::sqrt((members + 1.0) / members * mean.spread / mean.squared_error);
          row["spread_skill"] = std::isfinite(ratio) ? Json(ratio) : Json(nullptr);
        }
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

std::string station_table(const StationSetup& setup, const std::vector<StationSum>& sums,
                          size_t region) {
  const std::vector<size_t> leads = shown_lead_times(setup.lead_times_s.size());
  std::string head = setup.regions[region].name + ", stations\n" + std::string(10, ' '), text;
  for (const size_t lead : leads)
    head +=
        " | " + padded("RMSE " + format_lead_time(setup.lead_times_s[lead]), 11) + "        bias";
  double observations = 0.0;
  for (size_t v = 0; v < setup.observations.variables.size(); ++v) {
    text += padded(setup.observations.variables[v], 10);
    for (const size_t lead : leads) {
      const StationSum& sum = sums[place_of(setup, v, lead, region)];
      const FieldScores mean = mean_of(sum);
      text += sum.num_observations == 0.0 ? " |          --          --"
                                          : formatted(" | %11.4g", std::sqrt(mean.squared_error)) +
                                                formatted(" %11.4g", mean.error);
      observations += sum.num_observations;
    }
    text += "\n";
  }
  return observations == 0.0 ? "" : head + "\n" + text;
}

}  // namespace aifs::verify
