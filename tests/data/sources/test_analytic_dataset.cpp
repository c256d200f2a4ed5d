// SPDX-License-Identifier: Apache-2.0
// Oracles: the vorticity equation, with time derivatives of eighth order and space derivatives that
// are spectral along the circle of latitude and of eighth order along the meridian, all written
// here; the definitions of wind and vorticity; rotation at the analytic rate; Anemoi's forcing
// vectors; brute-force statistics.
#include "data/sources/analytic_dataset.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numbers>
#include <thread>

#include "core/check.h"
#include "core/rng.h"
#include "core/time.h"
#include "data/fields/variables.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kRadius_m = 6.371e6;
constexpr double kPlanetRotation_rad_s = 7.292e-5;
constexpr int64_t kTimeZero_s = 946684800;  // 2000-01-01: small times keep phases exact

struct Grid {
  std::vector<double> latitudes_deg, longitudes_deg;
  int64_t size() const { return static_cast<int64_t>(latitudes_deg.size()); }
};

// Circles with unequal numbers of cells, both poles, and a few cells that share no latitude.
Grid small_grid() {
  Grid grid;
  for (int circle = 0; circle <= 12; ++circle) {
    const int cells = 1 + 3 * std::min(circle, 12 - circle);
    for (int i = 0; i < cells; ++i) {
      grid.latitudes_deg.push_back(90.0 - 15.0 * circle);
      grid.longitudes_deg.push_back(360.0 * i / cells);
    }
  }
  for (int i = 0; i < 10; ++i) {
    grid.latitudes_deg.push_back(-80.0 + 17.3 * i);
    grid.longitudes_deg.push_back(-180.0 + 34.1 * i);
  }
  return grid;
}

AnalyticDataset make_dataset(const AnalyticOptions& options = {}) {
  const Grid grid = small_grid();
  return AnalyticDataset(options, grid.latitudes_deg, grid.longitudes_deg);
}

// Waves of one degree only.
AnalyticOptions single_degree(int64_t n) {
  AnalyticOptions options;
  options.min_degree = options.max_degree = n;
  return options;
}

// f' at 0 from values at multiples of h; the error is h⁸/630 f⁽⁹⁾.
double derivative(const std::function<double(int)>& f, double h) {
  constexpr double kWeights[] = {4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0};
  double sum = 0.0;
  for (int k = 1; k <= 4; ++k)
    sum += kWeights[k - 1] * (f(k) - f(-k));
  return sum / h;
}

// f' at 0 of a function of period 2π without wavenumbers above 31: exact up to rounding.
double periodic_derivative(const std::function<double(double)>& f) {
  constexpr int kPoints = 64;
  double sum = 0.0;
  for (int k = 1; k < kPoints; ++k) {
    const double x = 2.0 * kPi * k / kPoints;
    sum -= (k % 2 == 0 ? 0.5 : -0.5) / std::tan(x / 2.0) * f(x);
  }
  return sum;
}

struct Point {
  double latitude_deg, longitude_deg;
  double cos_lat() const { return std::cos(latitude_deg * kPi / 180.0); }
};

std::vector<Point> scattered_points(int count) {
  const CounterRng rng(5);
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    const auto counter = static_cast<uint64_t>(2 * i);
    points.push_back({-85.0 + 170.0 * rng.uniform(counter), 360.0 * rng.uniform(counter + 1)});
  }
  return points;
}

using Part = double FlowState::*;

// ∂/∂λ, ∂/∂φ (per radian) and ∂/∂t of a part of the flow, optionally times a function of latitude.
struct Differentiator {
  const AnalyticDataset& dataset;
  int64_t level;
  int64_t date_s;

  double lon(Part part, const Point& at) const {
    return periodic_derivative([&](double shift) {
      return dataset.flow(level, date_s, at.latitude_deg, at.longitude_deg + shift * 180.0 / kPi).*
             part;
    });
  }
  double lat(Part part, const Point& at, bool times_cos = false) const {
    constexpr double kStep_deg = 0.25;
    return derivative(
        [&](int k) {
          const Point moved{at.latitude_deg + k * kStep_deg, at.longitude_deg};
          return dataset.flow(level, date_s, moved.latitude_deg, moved.longitude_deg).*part *
                 (times_cos ? moved.cos_lat() : 1.0);
        },
        kStep_deg * kPi / 180.0);
  }
  double time(Part part, const Point& at) const {
    constexpr int64_t kStep_s = 900;
    return derivative(
        [&](int k) {
          return dataset.flow(level, date_s + k * kStep_s, at.latitude_deg, at.longitude_deg).*part;
        },
        static_cast<double>(kStep_s));
  }
};

// Largest |error| over root mean square of the reference, over points.
class RelativeError {
 public:
  void add(double error, double reference) {
    REQUIRE(std::isfinite(error));
    worst_ = std::max(worst_, std::abs(error));
    squares_ += reference * reference;
    ++count_;
  }
  double value() const { return worst_ / std::sqrt(squares_ / count_); }

 private:
  double worst_ = 0.0, squares_ = 0.0;
  int count_ = 0;
};

std::vector<float> evaluate(const AnalyticDataset& dataset, int64_t date_s, NodeRange nodes) {
  std::vector<float> out(static_cast<size_t>(nodes.size() * dataset.info().num_variables()));
  dataset.evaluate(date_s, nodes, out);
  return out;
}

std::vector<float> read(const AnalyticDataset& dataset, int64_t row, NodeRange nodes) {
  std::vector<float> out(static_cast<size_t>(nodes.size() * dataset.info().num_variables()));
  dataset.read(row, nodes, out);
  return out;
}

NodeRange all_nodes(const AnalyticDataset& dataset) {
  return {0, dataset.info().num_nodes()};
}

std::string error_of(const std::string& json) {
  AnalyticOptions options;
  try {
    config::read(options, config::parse_json(json, "test"), "data.analytic", {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("vorticity obeys the linearised barotropic vorticity equation", "[analytic]") {
  const AnalyticOptions options;
  const AnalyticDataset dataset = make_dataset(options);
  RelativeError residual;
  for (size_t l = 0; l < options.levels.size(); ++l) {
    const double omega = options.levels[l].zonal_wind_m_s / kRadius_m;
    const Differentiator d{dataset, static_cast<int64_t>(l), kTimeZero_s + 123456};
    for (const Point& at : scattered_points(100)) {
      const double tendency = d.time(&FlowState::vorticity, at);
      const double expected = -omega * d.lon(&FlowState::vorticity, at) -
                              2.0 * (kPlanetRotation_rad_s + omega) / (kRadius_m * kRadius_m) *
                                  d.lon(&FlowState::streamfunction_m2_s, at);
      residual.add(tendency - expected, tendency);
    }
  }
  REQUIRE(residual.value() < 1e-11);
}

TEST_CASE("waves of one degree solve the full barotropic vorticity equation", "[analytic]") {
  const AnalyticDataset dataset = make_dataset(single_degree(5));
  const Differentiator d{dataset, 1, kTimeZero_s};
  RelativeError residual;
  for (const Point& at : scattered_points(100)) {
    const FlowState flow = dataset.flow(1, d.date_s, at.latitude_deg, at.longitude_deg);
    const double tendency = d.time(&FlowState::vorticity, at);
    const double advection =
        flow.u_m_s / (kRadius_m * at.cos_lat()) * d.lon(&FlowState::vorticity, at) +
        flow.v_m_s / kRadius_m *
            (d.lat(&FlowState::vorticity, at) + 2.0 * kPlanetRotation_rad_s * at.cos_lat());
    residual.add(tendency + advection, tendency);
  }
  REQUIRE(residual.value() < 1e-11);
}

TEST_CASE("wind is the derivative of the streamfunction", "[analytic]") {
  const AnalyticDataset dataset = make_dataset();
  const Differentiator d{dataset, 2, kTimeZero_s};
  RelativeError u, v;
  for (const Point& at : scattered_points(100)) {
    const FlowState flow = dataset.flow(2, d.date_s, at.latitude_deg, at.longitude_deg);
    u.add(flow.u_m_s + d.lat(&FlowState::streamfunction_m2_s, at) / kRadius_m, flow.u_m_s);
    v.add(flow.v_m_s - d.lon(&FlowState::streamfunction_m2_s, at) / (kRadius_m * at.cos_lat()),
          flow.v_m_s);
  }
  REQUIRE(u.value() < 1e-11);
  REQUIRE(v.value() < 1e-11);
}

TEST_CASE("vorticity is the curl of the wind, and the wind has no divergence", "[analytic]") {
  const AnalyticDataset dataset = make_dataset();
  const Differentiator d{dataset, 0, kTimeZero_s};
  RelativeError curl, divergence;
  for (const Point& at : scattered_points(100)) {
    const FlowState flow = dataset.flow(0, d.date_s, at.latitude_deg, at.longitude_deg);
    const double scale = 1.0 / (kRadius_m * at.cos_lat());
    curl.add(scale * (d.lon(&FlowState::v_m_s, at) - d.lat(&FlowState::u_m_s, at, true)) -
                 flow.vorticity,
             flow.vorticity);
    divergence.add(scale * (d.lon(&FlowState::u_m_s, at) + d.lat(&FlowState::v_m_s, at, true)),
                   flow.vorticity);
  }
  REQUIRE(curl.value() < 1e-11);
  REQUIRE(divergence.value() < 1e-11);
}

TEST_CASE("every degree drifts at its own rate, without change of shape", "[analytic]") {
  constexpr int64_t kLead_s = 30 * 86400;
  RelativeError error;
  for (const int64_t n : {1, 2, 3, 7, 12}) {
    const AnalyticOptions options = single_degree(n);
    const AnalyticDataset dataset = make_dataset(options);
    const double omega = options.levels[0].zonal_wind_m_s / kRadius_m;
    const double rate_rad_s = omega - 2.0 * (kPlanetRotation_rad_s + omega) /
                                          (static_cast<double>(n) * static_cast<double>(n + 1));
    const double turned_deg = std::fmod(rate_rad_s * kLead_s * 180.0 / kPi, 360.0);
    for (const Point& at : scattered_points(20)) {
      const FlowState later =
          dataset.flow(0, kTimeZero_s + kLead_s, at.latitude_deg, at.longitude_deg);
      const FlowState first =
          dataset.flow(0, kTimeZero_s, at.latitude_deg, at.longitude_deg - turned_deg);
      error.add(later.v_m_s - first.v_m_s, first.v_m_s);
    }
  }
  REQUIRE(error.value() < 1e-12);
}

TEST_CASE("the waves have the wind that was asked for", "[analytic]") {
  AnalyticOptions options;
  options.levels = {{500, 54600.0, 0.0, 12.0}};
  const AnalyticDataset dataset = make_dataset(options);
  // midpoint rule in latitude: relative error of the order of (12 π/2000)²/12
  constexpr int kCircles = 2000, kMeridians = 32;
  double squares = 0.0, weights = 0.0;
  for (int i = 0; i < kCircles; ++i) {
    const Point at{-90.0 + 180.0 * (i + 0.5) / kCircles, 0.0};
    for (int j = 0; j < kMeridians; ++j) {
      const FlowState flow = dataset.flow(0, kTimeZero_s, at.latitude_deg, 360.0 * j / kMeridians);
      squares += at.cos_lat() * (flow.u_m_s * flow.u_m_s + flow.v_m_s * flow.v_m_s);
      weights += at.cos_lat();
    }
  }
  REQUIRE(std::sqrt(squares / weights) == Approx(12.0).epsilon(3e-5));
}

TEST_CASE("poles are finite and continuous, and their wind is one vector", "[analytic]") {
  const AnalyticDataset dataset = make_dataset();
  for (const double pole : {-1.0, 1.0}) {
    const FlowState reference = dataset.flow(2, kTimeZero_s, pole * 90.0, 0.0);
    REQUIRE(std::hypot(reference.u_m_s, reference.v_m_s) > 0.1);
    for (const double longitude_deg : {0.0, 77.0, 180.0, 300.0}) {
      const FlowState at = dataset.flow(2, kTimeZero_s, pole * 90.0, longitude_deg);
      const FlowState near = dataset.flow(2, kTimeZero_s, pole * (90.0 - 1e-6), longitude_deg);
      REQUIRE(std::abs(near.u_m_s - at.u_m_s) < 1e-4);
      REQUIRE(std::abs(near.v_m_s - at.v_m_s) < 1e-4);
      REQUIRE(std::abs(near.vorticity - at.vorticity) < 1e-10);
      // east and north at the pole, turned into the frame of the meridian of Greenwich
      const double turn = pole * longitude_deg * kPi / 180.0;
      const double u = std::cos(turn) * at.u_m_s - std::sin(turn) * at.v_m_s;
      const double v = std::sin(turn) * at.u_m_s + std::cos(turn) * at.v_m_s;
      REQUIRE(std::abs(u - reference.u_m_s) < 1e-11);
      REQUIRE(std::abs(v - reference.v_m_s) < 1e-11);
    }
  }
}

TEST_CASE("the axis, the grid and the sorted variables are described", "[analytic]") {
  AnalyticOptions options;
  options.start = "2020-01-01";
  options.end = "2020-01-10";
  options.frequency = "12h";
  const DatasetInfo info = make_dataset(options).info();
  REQUIRE(info.num_rows() == 20);
  REQUIRE(info.dates_s.front() == parse_date("2020-01-01T00:00:00"));
  REQUIRE(info.dates_s.back() == parse_date("2020-01-10T12:00:00"));
  REQUIRE(info.frequency_s == 43200);
  REQUIRE(info.field_shape == std::vector<int64_t>{info.num_nodes()});
  REQUIRE(info.latitudes_deg == small_grid().latitudes_deg);
  REQUIRE(info.variables ==
          std::vector<std::string>{"cos_julian_day", "cos_latitude", "cos_longitude", "ke_850",
                                   "sin_julian_day", "sin_latitude", "sin_longitude", "u_250",
                                   "u_500", "u_850", "v_250", "v_500", "v_850", "vo_250", "vo_500",
                                   "vo_850", "z_250", "z_500", "z_850"});
  REQUIRE(info.constant_fields == std::vector<std::string>{"cos_latitude", "cos_longitude",
                                                           "sin_latitude", "sin_longitude"});
}

TEST_CASE("dropped variables are not there, the others are what they were", "[analytic]") {
  AnalyticOptions options;
  const AnalyticDataset whole = make_dataset(options);
  options.drop = {"v_500", "cos_latitude"};
  const AnalyticDataset part = make_dataset(options);
  REQUIRE(part.info().num_variables() == whole.info().num_variables() - 2);
  REQUIRE(part.info().constant_fields.size() == 3);
  const std::vector<float> all = read(whole, 2, all_nodes(whole)),
                           some = read(part, 2, all_nodes(part));
  for (const std::string& name : part.info().variables) {
    REQUIRE((name != "v_500" && name != "cos_latitude"));
    for (int64_t node = 0; node < part.info().num_nodes(); ++node) {
      const auto of = [&](const AnalyticDataset& dataset, const std::vector<float>& row) {
        const DatasetInfo& info = dataset.info();
        return row[static_cast<size_t>(node * info.num_variables() + info.column(name))];
      };
      REQUIRE(of(part, some) == of(whole, all));
    }
  }
  for (const std::vector<std::string>& drop :
       {std::vector<std::string>{"w_500"}, std::vector<std::string>{"v_500", "v_500"}}) {
    options.drop = drop;
    REQUIRE_THROWS_AS(make_dataset(options), ConfigError);
  }
}

TEST_CASE("columns hold the flow of their level, rounded once", "[analytic]") {
  const AnalyticOptions options;
  const AnalyticDataset dataset = make_dataset(options);
  const DatasetInfo& info = dataset.info();
  const int64_t date_s = info.dates_s[3];
  const std::vector<float> row = read(dataset, 3, all_nodes(dataset));
  for (int64_t node = 0; node < info.num_nodes(); ++node) {
    const auto column = [&](const std::string& name) {
      return row[static_cast<size_t>(node * info.num_variables() + info.column(name))];
    };
    for (size_t l = 0; l < options.levels.size(); ++l) {
      const std::string level = std::to_string(options.levels[l].level);
      const FlowState flow = dataset.flow(static_cast<int64_t>(l), date_s,
                                          info.latitudes_deg[static_cast<size_t>(node)],
                                          info.longitudes_deg[static_cast<size_t>(node)]);
      const double z = options.levels[l].geopotential_m2_s2 + 1e-4 * flow.streamfunction_m2_s;
      REQUIRE(column("z_" + level) == static_cast<float>(z));
      REQUIRE(column("u_" + level) == static_cast<float>(flow.u_m_s));
      REQUIRE(column("v_" + level) == static_cast<float>(flow.v_m_s));
      REQUIRE(column("vo_" + level) == static_cast<float>(flow.vorticity));
    }
    REQUIRE(column("ke_850") ==
            Approx(0.5 * (std::pow(column("u_850"), 2) + std::pow(column("v_850"), 2)))
                .epsilon(1e-6)
                .margin(1e-12));
  }
}

TEST_CASE("forcings equal Anemoi's", "[analytic]") {
  const AnalyticDataset dataset({}, {0.0, 51.5, -33.0, 88.57}, {0.0, 359.9, 151.2, 120.0});
  const DatasetInfo& info = dataset.info();
  struct Vector {
    const char *date, *variable;
    std::vector<double> expected;
  };
  const std::vector<Vector> vectors{
      {"2020-01-01T06:00:00", "cos_latitude", {1, 0.622514637, 0.838670568, 0.0249556173}},
      {"2020-01-01T06:00:00", "sin_longitude", {0, -0.00174532837, 0.481753674, 0.866025404}},
      {"2020-01-01T06:00:00", "cos_julian_day", std::vector<double>(4, 0.999990752)},
      {"2020-01-01T06:00:00", "sin_julian_day", std::vector<double>(4, 0.0043005927)},
      {"2021-07-15T18:30:00", "cos_julian_day", std::vector<double>(4, -0.974539088)},
      {"2021-07-15T18:30:00", "sin_julian_day", std::vector<double>(4, -0.224217674)}};
  for (const Vector& vector : vectors) {
    const std::vector<float> row = evaluate(dataset, parse_date(vector.date), {0, 4});
    for (int64_t node = 0; node < 4; ++node) {
      const float value =
          row[static_cast<size_t>(node * info.num_variables() + info.column(vector.variable))];
      REQUIRE(std::abs(value - vector.expected[static_cast<size_t>(node)]) < 6e-8);
    }
  }
}

TEST_CASE("forcing, prognostic and diagnostic roles can all be given", "[analytic]") {
  const RoleOptions roles{{"cos_latitude", "sin_latitude", "cos_longitude", "sin_longitude",
                           "cos_julian_day", "sin_julian_day"},
                          {"ke_850"}};
  const VariableTable table(make_dataset().info().variables, roles);
  REQUIRE(table.num_prognostic() == 12);
  REQUIRE(table.num_inputs() == 18);
  REQUIRE(table.num_outputs() == 13);
}

TEST_CASE("a row is the truth at its date, and the truth goes on beyond the axis", "[analytic]") {
  AnalyticOptions january, february;
  january.start = "2020-01-01";
  january.end = "2020-01-31";
  february.start = "2020-02-01";
  february.end = "2020-02-29";
  const AnalyticDataset early = make_dataset(january), late = make_dataset(february);
  for (const int64_t row : {int64_t{0}, int64_t{17}, early.info().num_rows() - 1}) {
    const int64_t date_s = early.info().dates_s[static_cast<size_t>(row)];
    REQUIRE(read(early, row, all_nodes(early)) == evaluate(late, date_s, all_nodes(late)));
  }
}

TEST_CASE("cells of any range equal the slice of the whole", "[analytic]") {
  const AnalyticDataset dataset = make_dataset();
  const int64_t num_variables = dataset.info().num_variables();
  const std::vector<float> whole = read(dataset, 5, all_nodes(dataset));
  for (const NodeRange nodes : {NodeRange{0, 1}, NodeRange{3, 3}, NodeRange{7, 40},
                                NodeRange{50, dataset.info().num_nodes()}}) {
    const std::vector<float> slice(whole.begin() + nodes.begin * num_variables,
                                   whole.begin() + nodes.end * num_variables);
    REQUIRE(read(dataset, 5, nodes) == slice);
  }
}

TEST_CASE("rows read by many threads are the same bits", "[analytic]") {
  const AnalyticDataset dataset = make_dataset();
  constexpr int64_t kRows = 64;
  std::vector<std::vector<float>> parallel(kRows);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t row = t; row < kRows; row += 4)
        parallel[static_cast<size_t>(row)] = read(dataset, row, all_nodes(dataset));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (int64_t row = 0; row < kRows; ++row)
    REQUIRE(parallel[static_cast<size_t>(row)] == read(dataset, row, all_nodes(dataset)));
}

TEST_CASE("seeds and levels give different waves, which other levels do not change", "[analytic]") {
  AnalyticOptions options, other_seed;
  other_seed.seed = 2;
  const auto wave = [](const AnalyticOptions& o, int64_t level) {
    return make_dataset(o).flow(level, kTimeZero_s, 40.0, 10.0).v_m_s;
  };
  REQUIRE(wave(options, 0) == wave(options, 0));
  REQUIRE(wave(options, 0) != wave(other_seed, 0));
  REQUIRE(wave(options, 0) != wave(options, 1));
  options.levels = {options.levels[1]};
  REQUIRE(wave(options, 0) == wave({}, 1));
}

namespace {

// Two passes over float rows: the straightforward way.
Statistics brute_force(const std::vector<std::vector<float>>& rows, int64_t num_variables) {
  Statistics s;
  const auto width = static_cast<size_t>(num_variables);
  for (size_t v = 0; v < width; ++v) {
    long double sum = 0, squares = 0;
    size_t count = 0;
    double minimum = rows[0][v], maximum = rows[0][v];
    for (const auto& row : rows) {
      for (size_t i = v; i < row.size(); i += width, ++count) {
        sum += row[i];
        minimum = std::min(minimum, static_cast<double>(row[i]));
        maximum = std::max(maximum, static_cast<double>(row[i]));
      }
    }
    const long double mean = sum / static_cast<long double>(count);
    for (const auto& row : rows) {
      for (size_t i = v; i < row.size(); i += width)
        squares += (row[i] - mean) * (row[i] - mean);
    }
    s.mean.push_back(static_cast<double>(mean));
    s.stdev.push_back(static_cast<double>(std::sqrt(squares / static_cast<long double>(count))));
    s.minimum.push_back(minimum);
    s.maximum.push_back(maximum);
  }
  return s;
}

std::vector<std::vector<float>> all_rows(const AnalyticDataset& dataset) {
  std::vector<std::vector<float>> rows;
  for (int64_t row = 0; row < dataset.info().num_rows(); ++row)
    rows.push_back(read(dataset, row, all_nodes(dataset)));
  return rows;
}

}  // namespace

TEST_CASE("statistics of all rows equal brute force", "[analytic]") {
  AnalyticOptions options;
  options.end = "2020-01-31";
  options.statistics_rows = 1000;
  const AnalyticDataset dataset = make_dataset(options);
  const DatasetInfo& info = dataset.info();
  const Statistics expected = brute_force(all_rows(dataset), info.num_variables());
  for (size_t v = 0; v < info.variables.size(); ++v) {
    CAPTURE(info.variables[v]);
    const double scale = std::max(std::abs(expected.minimum[v]), std::abs(expected.maximum[v]));
    const double rounding = 1e-7 * scale;  // of the fp32 rows
    REQUIRE(std::abs(info.statistics.mean[v] - expected.mean[v]) < rounding);
    REQUIRE(std::abs(info.statistics.stdev[v] - expected.stdev[v]) < rounding);
    REQUIRE(std::abs(info.statistics.minimum[v] - expected.minimum[v]) < rounding);
    REQUIRE(std::abs(info.statistics.maximum[v] - expected.maximum[v]) < rounding);
  }
}

TEST_CASE("sampled statistics are close to those of a long record", "[analytic]") {
  const AnalyticDataset dataset = make_dataset();
  const DatasetInfo& info = dataset.info();
  REQUIRE(info.num_rows() > 1000);
  const Statistics expected = brute_force(all_rows(dataset), info.num_variables());
  for (size_t v = 0; v < info.variables.size(); ++v) {
    CAPTURE(info.variables[v]);
    REQUIRE(std::abs(info.statistics.mean[v] - expected.mean[v]) < 0.05 * expected.stdev[v]);
    REQUIRE(info.statistics.stdev[v] == Approx(expected.stdev[v]).epsilon(0.05));
    // extremes of a sample lie within those of the record, up to the rounding of its rows
    const double range = expected.maximum[v] - expected.minimum[v];
    const double rounding =
        1e-7 * std::max(std::abs(expected.minimum[v]), std::abs(expected.maximum[v]));
    REQUIRE(info.statistics.minimum[v] >= expected.minimum[v] - rounding);
    REQUIRE(info.statistics.maximum[v] <= expected.maximum[v] + rounding);
    REQUIRE(info.statistics.maximum[v] - info.statistics.minimum[v] > 0.5 * range);
  }
}

TEST_CASE("tendency statistics are those of differences between dates", "[analytic]") {
  AnalyticOptions options;
  options.end = "2020-01-31";
  options.statistics_rows = 1000;
  options.tendencies = {"1d"};
  const AnalyticDataset dataset = make_dataset(options);
  const DatasetInfo& info = dataset.info();
  REQUIRE(info.tendencies.size() == 2);
  for (const int64_t delta_s : {int64_t{21600}, int64_t{86400}}) {
    std::vector<std::vector<float>> differences;
    for (const int64_t date_s : info.dates_s) {
      std::vector<float> difference = evaluate(dataset, date_s + delta_s, all_nodes(dataset));
      const std::vector<float> now = evaluate(dataset, date_s, all_nodes(dataset));
      for (size_t i = 0; i < now.size(); ++i)
        difference[i] -= now[i];
      differences.push_back(std::move(difference));
    }
    const Statistics expected = brute_force(differences, info.num_variables());
    const Statistics& found = info.tendencies.at(delta_s);
    for (size_t v = 0; v < info.variables.size(); ++v) {
      CAPTURE(info.variables[v]);
      const double rounding =
          2e-7 * (std::abs(info.statistics.maximum[v]) + std::abs(info.statistics.minimum[v]));
      REQUIRE(std::abs(found.mean[v] - expected.mean[v]) < rounding);
      REQUIRE(std::abs(found.stdev[v] - expected.stdev[v]) < rounding);
      REQUIRE(std::abs(found.maximum[v] - expected.maximum[v]) < rounding);
    }
  }
}

TEST_CASE("statistics stay within their period", "[analytic]") {
  AnalyticOptions options, first_half;
  options.end = "2020-01-20";
  options.statistics_end = "2020-01-10";
  options.statistics_rows = 1000;
  first_half.end = "2020-01-10";
  first_half.statistics_rows = 1000;
  REQUIRE(make_dataset(options).info().statistics.mean ==
          make_dataset(first_half).info().statistics.mean);
}

TEST_CASE("options are read, and those that cannot be are refused by name", "[analytic]") {
  AnalyticOptions options;
  config::read(options,
               config::parse_json(
                   R"({"start": "2020-06", "max_degree": 5, "levels": [{"level": 700}]})", "test"),
               "", {});
  REQUIRE(options.levels.size() == 1);
  REQUIRE(options.levels[0].level == 700);
  REQUIRE(options.start_s() == parse_date("2020-06-01"));

  REQUIRE_THAT(error_of(R"({"end": "2019"})"), ContainsSubstring("data.analytic.end"));
  REQUIRE_THAT(error_of(R"({"start": ""})"), ContainsSubstring("data.analytic.start"));
  REQUIRE_THAT(error_of(R"({"frequency": "0h"})"), ContainsSubstring("data.analytic.frequency"));
  REQUIRE_THAT(error_of(R"({"max_degree": 1})"), ContainsSubstring("data.analytic.max_degree"));
  REQUIRE_THAT(error_of(R"({"levels": []})"), ContainsSubstring("data.analytic.levels"));
  REQUIRE_THAT(error_of(R"({"levels": [{"level": 9}, {"level": 9}]})"),
               ContainsSubstring("data.analytic.levels.1"));
  REQUIRE_THAT(error_of(R"({"statistics_end": "2019"})"),
               ContainsSubstring("data.analytic.statistics_end"));
  REQUIRE_THAT(error_of(R"({"tendencies": ["-6h"]})"),
               ContainsSubstring("data.analytic.tendencies.0"));
  REQUIRE(error_of("{}") == "no error");
}

TEST_CASE("coordinates and requests outside the grid are errors", "[analytic]") {
  REQUIRE_THROWS_AS(AnalyticDataset({}, {91.0}, {0.0}), DataError);
  REQUIRE_THROWS_AS(AnalyticDataset({}, {std::nan("")}, {0.0}), DataError);
  REQUIRE_THROWS_AS(AnalyticDataset({}, {0.0, 1.0}, {0.0}), Error);
  const AnalyticDataset dataset = make_dataset();
  std::vector<float> out(19);
  REQUIRE_THROWS_AS(dataset.read(dataset.info().num_rows(), {0, 1}, out), Error);
  REQUIRE_THROWS_AS(dataset.read(0, {0, 2}, out), Error);
  REQUIRE_THROWS_AS(dataset.read(0, {-1, 0}, out), Error);
}
