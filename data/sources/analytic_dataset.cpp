// SPDX-License-Identifier: Apache-2.0
#include "data/sources/analytic_dataset.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/check.h"
#include "core/rng.h"
#include "core/time.h"

namespace aifs::data {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kRadius_m = 6.371e6;
constexpr double kPlanetRotation_rad_s = 7.292e-5;
constexpr double kCoriolis = 1e-4;          // f0, s⁻¹
constexpr int64_t kTimeZero_s = 946684800;  // 2000-01-01T00:00:00

// All levels at one date, on one circle of latitude at a time.
class Snapshot {
 public:
  Snapshot(const SphericalHarmonics& harmonics, std::span<const RossbyWaves> levels, int64_t date_s)
      : harmonics_(harmonics),
        levels_(levels),
        legendre_(static_cast<size_t>(harmonics.num_modes())),
        num_waves_(static_cast<size_t>(harmonics.max_degree() + 1)),
        waves_(levels.size() * num_waves_) {
    for (const RossbyWaves& level : levels)
      spectra_.push_back(level.spectrum(date_s));
  }

  void move_to(double sin_lat, double cos_lat) {
    sin_lat_ = sin_lat;
    cos_lat_ = cos_lat;
    harmonics_.legendre(sin_lat, cos_lat, legendre_);
    for (size_t l = 0; l < levels_.size(); ++l)
      harmonics_.to_circle(legendre_, spectra_[l], waves(l));
  }

  FlowState flow(size_t level, double cos_lon, double sin_lon) {
    return levels_[level].flow(at_longitude(waves(level), cos_lon, sin_lon), sin_lat_, cos_lat_);
  }

 private:
  std::span<ZonalWave> waves(size_t level) {
    return std::span(waves_).subspan(level * num_waves_, num_waves_);
  }

  const SphericalHarmonics& harmonics_;
  std::span<const RossbyWaves> levels_;
  std::vector<Spectrum> spectra_;         // (levels)
  std::vector<LegendreValues> legendre_;  // (modes)
  size_t num_waves_;
  std::vector<ZonalWave> waves_;  // (levels, wavenumbers)
  double sin_lat_ = 0.0, cos_lat_ = 1.0;
};

// Moments and range of V variables. Sums are taken about the first row, because means may be much
// larger than deviations.
class StatisticsSampler {
 public:
  // `rows` is (any, num_variables).
  void add(std::span<const double> rows, size_t num_variables) {
    if (offset_.empty()) start(rows.first(num_variables));
    for (size_t i = 0; i < rows.size(); i += num_variables) {
      for (size_t v = 0; v < num_variables; ++v) {
        const double x = rows[i + v], deviation = x - offset_[v];
        sum_[v] += deviation;
        squares_[v] += deviation * deviation;
        minimum_[v] = std::min(minimum_[v], x);
        maximum_[v] = std::max(maximum_[v], x);
      }
      count_ += 1.0;
    }
  }

  Statistics result() const {
    Statistics statistics{{}, {}, minimum_, maximum_};
    for (size_t v = 0; v < offset_.size(); ++v) {
      const double mean = sum_[v] / count_;
      statistics.mean.push_back(offset_[v] + mean);
      statistics.stdev.push_back(std::sqrt(std::max(0.0, squares_[v] / count_ - mean * mean)));
    }
    return statistics;
  }

 private:
  void start(std::span<const double> first_row) {
    offset_.assign(first_row.begin(), first_row.end());
    minimum_ = maximum_ = offset_;
    sum_.assign(offset_.size(), 0.0);
    squares_.assign(offset_.size(), 0.0);
  }

  double count_ = 0.0;
  std::vector<double> offset_, sum_, squares_, minimum_, maximum_;
};

// At most `count` of the rows 0 ... num_rows - 1, evenly spread, both ends included.
std::vector<int64_t> spread_rows(int64_t num_rows, int64_t count) {
  count = std::min(count, num_rows);
  if (count == 1) return {0};
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(i * (num_rows - 1) / (count - 1));
  return rows;
}

void check_place(double latitude_deg, double longitude_deg, size_t index) {
  if (!(std::abs(latitude_deg) <= 90.0) || !std::isfinite(longitude_deg)) {
    throw DataError(concat("analytic dataset: cell ", index, " at latitude ", latitude_deg,
                           ", longitude ", longitude_deg, " is no place on the sphere"));
  }
}

}  // namespace

RossbyWaves::RossbyWaves(const SphericalHarmonics& harmonics, const AnalyticOptions& options,
                         const AnalyticLevel& level)
    : rotation_rad_s_(level.zonal_wind_m_s / kRadius_m) {
  const auto num_modes = static_cast<size_t>(harmonics.num_modes());
  for (auto* values : {&amplitude_m2_s_, &phase_rad_, &frequency_rad_s_})
    values->assign(num_modes, 0.0);
  const CounterRng rng(static_cast<uint64_t>(options.seed));
  double wind_variance_m2_s2 = 0.0;
  for (int64_t n = options.min_degree; n <= options.max_degree; ++n) {
    const auto eigenvalue = static_cast<double>(n * (n + 1));
    const double drift_rad_s =
        rotation_rad_s_ - 2.0 * (kPlanetRotation_rad_s + rotation_rad_s_) / eigenvalue;
    for (int64_t m = 0; m <= n; ++m) {
      const auto k = static_cast<size_t>(harmonics.mode(n, m));
      const auto stream = static_cast<uint64_t>((level.level << 20) + n * (n + 1) / 2 + m);
      const double amplitude =
          rng.normal(2 * stream) * std::pow(static_cast<double>(n), -options.decay);
      const double phase = 2.0 * kPi * rng.uniform(4 * stream + 2);
      // mean over the sphere of |∇ψ|² is n(n+1)/a² times that of ψ²
      const double mean_square = m == 0 ? std::cos(phase) * std::cos(phase) : 0.5;
      wind_variance_m2_s2 +=
          eigenvalue / (kRadius_m * kRadius_m) * amplitude * amplitude * mean_square;
      amplitude_m2_s_[k] = amplitude;
      phase_rad_[k] = phase;
      frequency_rad_s_[k] = static_cast<double>(m) * drift_rad_s;
    }
  }
  for (double& amplitude : amplitude_m2_s_)
    amplitude *= level.wave_wind_m_s / std::sqrt(wind_variance_m2_s2);
}

Spectrum RossbyWaves::spectrum(int64_t date_s) const {
  const auto time_s = static_cast<double>(date_s - kTimeZero_s);
  Spectrum result;
  for (size_t k = 0; k < amplitude_m2_s_.size(); ++k) {
    const double angle_rad = phase_rad_[k] - frequency_rad_s_[k] * time_s;
    result.cosine.push_back(amplitude_m2_s_[k] * std::cos(angle_rad));
    result.sine.push_back(-amplitude_m2_s_[k] * std::sin(angle_rad));
  }
  return result;
}

FlowState RossbyWaves::flow(const FieldValues& waves, double sin_lat, double cos_lat) const {
  FlowState state;
  state.streamfunction_m2_s = waves.value - kRadius_m * kRadius_m * rotation_rad_s_ * sin_lat;
  state.u_m_s = kRadius_m * rotation_rad_s_ * cos_lat - waves.north / kRadius_m;
  state.v_m_s = waves.east / kRadius_m;
  state.vorticity = waves.laplacian / (kRadius_m * kRadius_m) + 2.0 * rotation_rad_s_ * sin_lat;
  return state;
}

AnalyticDataset::AnalyticDataset(AnalyticOptions options, std::vector<double> latitudes_deg,
                                 std::vector<double> longitudes_deg, std::vector<int64_t> grids)
    : options_(std::move(options)), harmonics_(options_.max_degree) {
  options_.validate("data.analytic");
  AIFS_CHECK(latitudes_deg.size() == longitudes_deg.size() && !latitudes_deg.empty(),
             latitudes_deg.size(), " latitudes, ", longitudes_deg.size(), " longitudes");
  for (size_t i = 0; i < latitudes_deg.size(); ++i) {
    check_place(latitudes_deg[i], longitudes_deg[i], i);
    places_.push_back(place_at(latitudes_deg[i], longitudes_deg[i]));
  }
  for (const AnalyticLevel& level : options_.levels)
    levels_.emplace_back(harmonics_, options_, level);

  info_.name = "analytic";
  info_.frequency_s = options_.frequency_s();
  for (int64_t date = options_.start_s(); date <= options_.end_s(); date += info_.frequency_s)
    info_.dates_s.push_back(date);
  info_.latitudes_deg = std::move(latitudes_deg);
  info_.longitudes_deg = std::move(longitudes_deg);
  info_.field_shape = {info_.num_nodes()};
  info_.grids = std::move(grids);
  name_columns();
  sample_statistics();
}

AnalyticDataset::Place AnalyticDataset::place_at(double latitude_deg, double longitude_deg) {
  const double latitude_rad = latitude_deg * kPi / 180.0;
  const double longitude_rad = longitude_deg * kPi / 180.0;
  return {std::cos(latitude_rad), std::sin(latitude_rad), std::cos(longitude_rad),
          std::sin(longitude_rad)};
}

// Anemoi's julian day: days since 1 January 00:00 of the year, turned by 2π/365.25 in every year.
AnalyticDataset::Season AnalyticDataset::season_of(int64_t date_s) {
  const int64_t new_year_s = from_calendar({.year = to_calendar(date_s).year});
  const double angle_rad = 2.0 * kPi * static_cast<double>(date_s - new_year_s) / 86400.0 / 365.25;
  return {std::cos(angle_rad), std::sin(angle_rad)};
}

void AnalyticDataset::name_columns() {
  using Q = Quantity;
  std::vector<std::pair<std::string, Column>> named{
      {"cos_latitude", {Q::kCosLatitude}},
      {"sin_latitude", {Q::kSinLatitude}},
      {"cos_longitude", {Q::kCosLongitude}},
      {"sin_longitude", {Q::kSinLongitude}},
      {"cos_julian_day", {Q::kCosJulianDay}},
      {"sin_julian_day", {Q::kSinJulianDay}},
      {concat("ke_", options_.levels.front().level), {Q::kKineticEnergy}}};
  for (size_t l = 0; l < options_.levels.size(); ++l) {
    const int64_t level = options_.levels[l].level;
    named.push_back({concat("z_", level), {Q::kGeopotential, l}});
    named.push_back({concat("u_", level), {Q::kU, l}});
    named.push_back({concat("v_", level), {Q::kV, l}});
    named.push_back({concat("vo_", level), {Q::kVorticity, l}});
  }
  for (const std::string& dropped : options_.drop) {
    const auto erased =
        std::erase_if(named, [&](const auto& entry) { return entry.first == dropped; });
    if (erased == 0) {
      throw ConfigError("data.analytic.drop",
                        concat("'", dropped, "' is no variable of this dataset, or listed twice"));
    }
  }
  std::sort(named.begin(), named.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [name, column] : named) {
    if (column.quantity == Q::kCosLatitude || column.quantity == Q::kSinLatitude ||
        column.quantity == Q::kCosLongitude || column.quantity == Q::kSinLongitude) {
      info_.constant_fields.push_back(name);
    }
    info_.variables.push_back(std::move(name));
    columns_.push_back(column);
  }
}

double AnalyticDataset::value(const Column& column, const Place& place, const Season& season,
                              std::span<const FlowState> flows) const {
  const FlowState& flow = flows[column.level];
  switch (column.quantity) {
    case Quantity::kGeopotential:
      return options_.levels[column.level].geopotential_m2_s2 +
             kCoriolis * flow.streamfunction_m2_s;
    case Quantity::kU:
      return flow.u_m_s;
    case Quantity::kV:
      return flow.v_m_s;
    case Quantity::kVorticity:
      return flow.vorticity;
    case Quantity::kKineticEnergy:
      return 0.5 * (flow.u_m_s * flow.u_m_s + flow.v_m_s * flow.v_m_s);
    case Quantity::kCosLatitude:
      return place.cos_lat;
    case Quantity::kSinLatitude:
      return place.sin_lat;
    case Quantity::kCosLongitude:
      return place.cos_lon;
    case Quantity::kSinLongitude:
      return place.sin_lon;
    case Quantity::kCosJulianDay:
      return season.cos_julian_day;
    case Quantity::kSinJulianDay:
      return season.sin_julian_day;
  }
  throw Error("analytic dataset: a column of unknown quantity");
}

template <class T>
void AnalyticDataset::fill(int64_t date_s, NodeRange nodes, std::span<T> out) const {
  AIFS_CHECK(nodes.begin >= 0 && nodes.begin <= nodes.end && nodes.end <= info_.num_nodes(),
             "cells ", nodes.begin, " to ", nodes.end, " of ", info_.num_nodes());
  AIFS_CHECK(static_cast<int64_t>(out.size()) == nodes.size() * info_.num_variables(), out.size(),
             " values for ", nodes.size(), " cells");
  Snapshot snapshot(harmonics_, levels_, date_s);
  const Season season = season_of(date_s);
  std::vector<FlowState> flows(levels_.size());
  size_t at = 0;
  for (int64_t node = nodes.begin; node < nodes.end; ++node) {
    const auto i = static_cast<size_t>(node);
    const Place& place = places_[i];
    if (node == nodes.begin || info_.latitudes_deg[i] != info_.latitudes_deg[i - 1])
      snapshot.move_to(place.sin_lat, place.cos_lat);
    for (size_t l = 0; l < flows.size(); ++l)
      flows[l] = snapshot.flow(l, place.cos_lon, place.sin_lon);
    for (const Column& column : columns_)
      out[at++] = static_cast<T>(value(column, place, season, flows));
  }
}

void AnalyticDataset::read(int64_t row, NodeRange nodes, std::span<float> out) const {
  AIFS_CHECK(row >= 0 && row < info_.num_rows(), "row ", row, " of ", info_.num_rows());
  fill(info_.dates_s[static_cast<size_t>(row)], nodes, out);
}

void AnalyticDataset::evaluate(int64_t date_s, NodeRange nodes, std::span<float> out) const {
  fill(date_s, nodes, out);
}

FlowState AnalyticDataset::flow(int64_t level_index, int64_t date_s, double latitude_deg,
                                double longitude_deg) const {
  const auto level = static_cast<size_t>(level_index);
  AIFS_CHECK(level < levels_.size(), "level ", level_index, " of ", levels_.size());
  const Place place = place_at(latitude_deg, longitude_deg);
  Snapshot snapshot(harmonics_, std::span(levels_).subspan(level, 1), date_s);
  snapshot.move_to(place.sin_lat, place.cos_lat);
  return snapshot.flow(0, place.cos_lon, place.sin_lon);
}

void AnalyticDataset::sample_statistics() {
  const NodeRange all{0, info_.num_nodes()};
  const auto num_variables = static_cast<size_t>(info_.num_variables());
  std::vector<double> now(static_cast<size_t>(all.size()) * num_variables), later(now.size());
  StatisticsSampler fields;
  std::map<int64_t, StatisticsSampler> tendencies;
  const int64_t period_s = options_.statistics_end_s() - options_.start_s();
  for (const int64_t row :
       spread_rows(period_s / info_.frequency_s + 1, options_.statistics_rows)) {
    const int64_t date_s = info_.dates_s[static_cast<size_t>(row)];
    fill<double>(date_s, all, now);
    fields.add(now, num_variables);
    for (const int64_t delta_s : options_.tendencies_s()) {
      fill<double>(date_s + delta_s, all, later);
      for (size_t i = 0; i < later.size(); ++i)
        later[i] -= now[i];
      tendencies[delta_s].add(later, num_variables);
    }
  }
  info_.statistics = fields.result();
  for (const auto& [delta_s, sampler] : tendencies)
    info_.tendencies[delta_s] = sampler.result();
}

}  // namespace aifs::data
