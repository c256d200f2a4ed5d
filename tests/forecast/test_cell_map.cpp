// SPDX-License-Identifier: Apache-2.0
#include "forecast/cell_map.h"

#include <cmath>
#include <numeric>

#include "core/check.h"
#include "graph/nodes/gaussian_grid.h"
#include "tests/support/catch.h"

using namespace aifs;
using forecast::Area;
using forecast::CellMap;
using forecast::ForecastContents;
using forecast::Interpolation;
using forecast::RegularGrid;

namespace {

constexpr double kRadians = 0.017453292519943295;

ForecastContents gaussian(const char* name) {
  graph::Coordinates cells = graph::gaussian_coordinates(graph::parse_gaussian_grid(name));
  ForecastContents contents;
  contents.field_shape = {cells.num_points()};
  contents.latitudes_deg = std::move(cells.lat_deg);
  contents.longitudes_deg = std::move(cells.lon_deg);
  return contents;
}

// Rows from `north` southwards, columns from `west` eastwards.
ForecastContents box(double north, double west, double step, int rows, int columns) {
  ForecastContents contents;
  contents.field_shape = {rows, columns};
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      contents.latitudes_deg.push_back(north - step * r);
      contents.longitudes_deg.push_back(west + step * c);
    }
  }
  return contents;
}

std::vector<float> values_on(const CellMap& map, const std::vector<float>& from) {
  std::vector<float> to(static_cast<size_t>(map.num_cells()));
  map.apply(from, to, 1);
  return to;
}

// A field that is neither smooth nor symmetric.
std::vector<float> noise(size_t count) {
  std::vector<float> values;
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < count; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    values.push_back(static_cast<float>(state % 100000) / 1000.0f + 200.0f);
  }
  return values;
}

// The mean over the globe by Gaussian quadrature, whose weights come from the interlacing areas of
// the roots: solved as w = 2 (1 - x^2) / (n P_{n-1}(x))^2, P by its explicit sum.
double quadrature_mean(const ForecastContents& cells, const std::vector<float>& field,
                       int64_t number) {
  const auto n = static_cast<int>(2 * number);
  double sum = 0.0, all = 0.0;
  for (size_t begin = 0, end = 0; begin < field.size(); begin = end) {
    double row = 0.0;
    for (; end < field.size() && cells.latitudes_deg[end] == cells.latitudes_deg[begin]; ++end)
      row += static_cast<double>(field[end]);
    const double x = std::sin(cells.latitudes_deg[begin] * kRadians);
    const double p = std::legendre(static_cast<unsigned>(n - 1), x);
    const double weight = 2.0 * (1.0 - x * x) / (n * n * p * p);
    sum += weight * row / static_cast<double>(end - begin);
    all += weight;
  }
  REQUIRE(all == Approx(2.0).epsilon(1e-12));
  return sum / all;
}

// The mean over the globe of values in boxes between the latitudes half-way.
double box_mean(const CellMap& map, const std::vector<float>& field, double step) {
  double sum = 0.0, all = 0.0;
  for (size_t i = 0; i < field.size(); ++i) {
    const double north = std::min(map.latitudes_deg[i] + step / 2, 90.0);
    const double south = std::max(map.latitudes_deg[i] - step / 2, -90.0);
    const double weight = std::sin(north * kRadians) - std::sin(south * kRadians);
    sum += weight * static_cast<double>(field[i]);
    all += weight;
  }
  return sum / all;
}

}  // namespace

TEST_CASE("conservative weights keep the mean over the globe", "[cell_map]") {
  struct Grid {
    const char* name;
    int64_t number;
  };
  for (const Grid& grid : {Grid{"o16", 16}, Grid{"n32", 32}, Grid{"f16", 16}}) {
    const ForecastContents cells = gaussian(grid.name);
    const std::vector<float> field = noise(cells.latitudes_deg.size());
    for (const double step : {1.5, 10.0}) {
      INFO(grid.name << " " << step);
      const CellMap map =
          forecast::map_to_grid(cells, {step, step, Interpolation::kConservative}, {});
      REQUIRE(map.field_shape ==
              std::vector<int64_t>{std::llround(180 / step) + 1, std::llround(360 / step)});
      const double before = quadrature_mean(cells, field, grid.number);
      REQUIRE(box_mean(map, values_on(map, field), step) == Approx(before).epsilon(1e-6));
    }
  }
}

TEST_CASE("conservative values lie between those of cells nearby, and keep what is constant",
          "[cell_map]") {
  const ForecastContents cells = gaussian("o16");
  const CellMap map = forecast::map_to_grid(cells, {4.0, 4.0, Interpolation::kConservative}, {});
  std::vector<float> ones(cells.latitudes_deg.size(), 3.25f);
  for (const float value : values_on(map, ones))
    REQUIRE(value == Approx(3.25f).epsilon(1e-6));
  std::vector<float> north;
  for (const double latitude : cells.latitudes_deg)
    north.push_back(static_cast<float>(latitude));
  const std::vector<float> mapped = values_on(map, north);
  for (size_t i = 0; i < mapped.size(); ++i)
    REQUIRE(std::abs(static_cast<double>(mapped[i]) - map.latitudes_deg[i]) < 5.6 / 2 + 2.0 + 1.0);
}

TEST_CASE("nearest takes the value of the cell with the smallest distance", "[cell_map]") {
  const ForecastContents cells = gaussian("o16");
  const CellMap map = forecast::map_to_grid(cells, {7.0 + 2.0, 7.5, Interpolation::kNearest},
                                            Area{60, -30, -60, 50});
  REQUIRE(map.field_shape == std::vector<int64_t>{17, 9});
  std::vector<float> numbers(cells.latitudes_deg.size());
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const std::vector<float> mapped = values_on(map, numbers);
  for (size_t i = 0; i < mapped.size(); ++i) {
    const auto cosine = [&](size_t k) {  // of the angle between the cell and the point
      const double a = cells.latitudes_deg[k] * kRadians, b = map.latitudes_deg[i] * kRadians;
      const double apart = (cells.longitudes_deg[k] - map.longitudes_deg[i]) * kRadians;
      return std::sin(a) * std::sin(b) + std::cos(a) * std::cos(b) * std::cos(apart);
    };
    double best = -1.0;
    for (size_t k = 0; k < numbers.size(); ++k)
      best = std::max(best, cosine(k));
    REQUIRE(cosine(static_cast<size_t>(mapped[i])) >= best - 1e-13);  // several may be as near
  }
}

TEST_CASE("a regular grid onto itself keeps its values", "[cell_map]") {
  const ForecastContents cells = box(90, 0, 10, 19, 36);
  const std::vector<float> field = noise(cells.latitudes_deg.size());
  for (const Interpolation kind : {Interpolation::kConservative, Interpolation::kNearest}) {
    const CellMap map = forecast::map_to_grid(cells, {10, 10, kind}, {});
    const std::vector<float> mapped = values_on(map, field);
    for (size_t i = 0; i < field.size(); ++i)
      if (std::abs(map.latitudes_deg[i]) < 89.0 || kind == Interpolation::kConservative)
        REQUIRE(mapped[i] == Approx(field[i]).epsilon(1e-6));
  }
}

TEST_CASE("values are missing where most of a box is, or no cell reaches", "[cell_map]") {
  const ForecastContents cells = box(50, 0, 1, 11, 11);
  std::vector<float> field(cells.latitudes_deg.size(), 5.0f);
  field[0] = NAN;
  const CellMap same =
      forecast::map_to_grid(cells, {1, 1, Interpolation::kConservative}, Area{52, -2, 40, 10});
  REQUIRE(same.field_shape == std::vector<int64_t>{13, 13});
  const std::vector<float> mapped = values_on(same, field);
  for (size_t i = 0; i < mapped.size(); ++i) {
    const bool is_covered = same.latitudes_deg[i] <= 50.0 && same.longitudes_deg[i] >= 0.0;
    const bool is_missing = same.latitudes_deg[i] == 50.0 && same.longitudes_deg[i] == 0.0;
    if (is_covered && !is_missing)
      REQUIRE(mapped[i] == 5.0f);
    else
      REQUIRE(std::isnan(mapped[i]));
  }
}

TEST_CASE("an area keeps its cells, and rows and columns where they form a box", "[cell_map]") {
  const ForecastContents cells = gaussian("o16");
  const Area europe{72, -12, 34, 42};
  const CellMap map = forecast::select_area(cells, europe);
  REQUIRE(map.field_shape == std::vector<int64_t>{map.num_cells()});
  std::vector<float> numbers(cells.latitudes_deg.size());
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  std::vector<float> wanted;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double east = std::remainder(cells.longitudes_deg[i], 360.0);
    if (cells.latitudes_deg[i] <= 72 && cells.latitudes_deg[i] >= 34 && east >= -12 && east <= 42)
      wanted.push_back(numbers[i]);
  }
  REQUIRE(values_on(map, numbers) == wanted);
  const CellMap rows = forecast::select_area(box(90, 0, 10, 19, 36), Area{20, -20, -10, 10});
  REQUIRE(rows.field_shape == std::vector<int64_t>{4, 4});
  REQUIRE(std::vector<double>(rows.longitudes_deg.begin(), rows.longitudes_deg.begin() + 4) ==
          std::vector<double>{340, 350, 0, 10});
  REQUIRE(rows.latitudes_deg.front() == 20.0);
  REQUIRE(rows.latitudes_deg.back() == -10.0);
}

TEST_CASE("grids and areas that cannot be are refused by option", "[cell_map]") {
  using forecast::parse_area;
  using forecast::parse_regular_grid;
  REQUIRE(parse_regular_grid("0.25/0.5", "--grid").south_step_deg == 0.5);
  REQUIRE(parse_area("72/-12/34/42", "--area").east_deg == 42.0);
  for (const char* text : {"1", "1/2/3", "a/1", "0/1", "1/-1", "1/1x", ""})
    REQUIRE_THROWS_WITH(parse_regular_grid(text, "--grid"), ContainsSubstring("'--grid'"));
  for (const char* text : {"1/2/3", "10/0/20/5", "91/0/0/1", "10/0/0/400", "a/b/c/d"})
    REQUIRE_THROWS_WITH(parse_area(text, "--area"), ContainsSubstring("'--area'"));
  const ForecastContents cells = gaussian("o16");
  REQUIRE_THROWS_WITH(forecast::map_to_grid(cells, {7.0, 10.0}, {}), ContainsSubstring("divide"));
  REQUIRE_THROWS_WITH(forecast::select_area(cells, Area{10.01, 20.01, 10.0, 20.02}),
                      ContainsSubstring("'--area'"));
  ForecastContents scattered = cells;
  scattered.latitudes_deg[5] += 1.0;
  REQUIRE_THROWS_WITH(forecast::map_to_grid(scattered, {10.0, 10.0}, {}),
                      ContainsSubstring("no rows"));
}
