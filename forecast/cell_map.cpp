// SPDX-License-Identifier: Apache-2.0
#include "forecast/cell_map.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/check.h"
#include "data/combine/nearest_points.h"
#include "forecast/cell_rows.h"
#include "graph/base/kd_tree.h"
#include "graph/base/parallel_for.h"

namespace aifs::forecast {

namespace {

constexpr double kRadians = 0.017453292519943295;
constexpr double kRounding_deg = 1e-6;

double sine(double degrees) {
  return std::sin(degrees * kRadians);
}

// "0.25/0.25" -> {0.25, 0.25}.
std::vector<double> numbers_in(const std::string& text, size_t count, const std::string& option,
                               const std::string& example) {
  std::vector<double> numbers;
  const char* at = text.c_str();
  while (true) {
    char* end = nullptr;
    numbers.push_back(std::strtod(at, &end));
    const bool is_last = *end == '\0';
    if (end == at || !std::isfinite(numbers.back()) || (!is_last && *end != '/') ||
        (is_last && numbers.size() != count) || numbers.size() > count)
      throw ConfigError(option, concat("'", text, "' is not ", count, " numbers apart by '/'"),
                        example);
    if (is_last) return numbers;
    at = end + 1;
  }
}

bool divides(double step_deg, double span_deg) {
  const double count = span_deg / step_deg;
  return std::abs(count - std::round(count)) < 1e-6;
}

}  // namespace

bool Area::contains(double latitude_deg, double longitude_deg) const {
  if (latitude_deg > north_deg + kRounding_deg || latitude_deg < south_deg - kRounding_deg)
    return false;
  if (east_deg - west_deg >= 360.0) return true;
  return positive_longitude(longitude_deg - west_deg + kRounding_deg) <=
         positive_longitude(east_deg - west_deg) + 2 * kRounding_deg;
}

Area parse_area(const std::string& text, const std::string& option) {
  const char* example = "north/west/south/east in degrees: 72/-12/34/42";
  const std::vector<double> sides = numbers_in(text, 4, option, example);
  const Area area{sides[0], sides[1], sides[2], sides[3]};
  if (area.north_deg > 90 || area.south_deg < -90 || std::abs(area.west_deg) > 360 ||
      std::abs(area.east_deg) > 360)
    throw ConfigError(
        option, concat("'", text, "': latitudes are -90 to 90, longitudes -360 to 360"), example);
  if (area.north_deg <= area.south_deg)
    throw ConfigError(option, concat("'", text, "': north is not north of south"), example);
  return area;
}

RegularGrid parse_regular_grid(const std::string& text, const std::string& option) {
  const std::vector<double> steps =
      numbers_in(text, 2, option, "degrees eastwards and southwards: 0.25/0.25");
  constexpr double kLeast = 0.01, kMost = 90.0;  // 648 million cells are enough
  for (const double step : steps)
    if (step < kLeast || step > kMost)
      throw ConfigError(option, concat("a step of ", step, " degrees"),
                        concat(kLeast, " to ", kMost, " can be"));
  return {steps[0], steps[1]};
}

void CellMap::apply(std::span<const float> from, std::span<float> to, int64_t threads) const {
  AIFS_CHECK(std::ssize(to) == num_cells(), to.size(), " values of ", num_cells(), " cells");
  constexpr double kLeastCovered = 0.5 - 1e-6;
  const auto value = [&](size_t i) {
    double sum = 0.0, covered = 0.0;
    for (auto k = static_cast<size_t>(row_starts[i]); k < static_cast<size_t>(row_starts[i + 1]);
         ++k) {
      const float field = from[static_cast<size_t>(sources[k])];
      if (std::isnan(field)) continue;
      const auto weight = static_cast<double>(weights[k]);
      sum += weight * static_cast<double>(field);
      covered += weight;
    }
    if (covered < kLeastCovered) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(sum / covered);
  };
  graph::parallel_for(num_cells(), threads, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[static_cast<size_t>(i)] = value(static_cast<size_t>(i));
  });
}

namespace {

// Adds a cell that has the value of another one.
void add_copy(CellMap& map, const ForecastContents& contents, size_t cell) {
  map.latitudes_deg.push_back(contents.latitudes_deg[cell]);
  map.longitudes_deg.push_back(contents.longitudes_deg[cell]);
  map.sources.push_back(static_cast<int32_t>(cell));
  map.weights.push_back(1.0f);
  map.row_starts.push_back(std::ssize(map.sources));
}

CellMap empty_map(const ForecastContents& contents) {
  CellMap map;
  map.row_starts = {0};
  map.num_sources = std::ssize(contents.latitudes_deg);
  return map;
}

// Columns of the cells of an area from its western side on, of rows of equal length; empty if these
// do not form a box with its rows.
std::vector<size_t> columns_of_box(const ForecastContents& contents, const Area& area,
                                   const std::vector<bool>& inside) {
  if (contents.field_shape.size() != 2) return {};
  const auto width = static_cast<size_t>(contents.field_shape[1]);
  std::vector<bool> in_column(width, false), in_row(inside.size() / width, false);
  for (size_t i = 0; i < inside.size(); ++i)
    if (inside[i]) in_column[i % width] = in_row[i / width] = true;
  for (size_t i = 0; i < inside.size(); ++i)
    if (inside[i] != (in_column[i % width] && in_row[i / width])) return {};
  std::vector<size_t> columns;
  for (size_t c = 0; c < width; ++c)
    if (in_column[c]) columns.push_back(c);
  const auto east = [&](size_t c) {
    return positive_longitude(contents.longitudes_deg[c] - area.west_deg + kRounding_deg);
  };
  if (area.east_deg - area.west_deg < 360.0) std::ranges::stable_sort(columns, {}, east);
  return columns;
}

}  // namespace

CellMap select_area(const ForecastContents& contents, const Area& area) {
  CellMap map = empty_map(contents);
  const size_t cells = contents.latitudes_deg.size();
  std::vector<bool> inside(cells);
  for (size_t i = 0; i < cells; ++i)
    inside[i] = area.contains(contents.latitudes_deg[i], contents.longitudes_deg[i]);
  const std::vector<size_t> columns = columns_of_box(contents, area, inside);
  if (columns.empty()) {
    for (size_t i = 0; i < cells; ++i)
      if (inside[i]) add_copy(map, contents, i);
    map.field_shape = {map.num_cells()};
  } else {
    const auto width = static_cast<size_t>(contents.field_shape[1]);
    for (size_t first = 0; first < cells; first += width)
      for (const size_t c : columns)
        if (inside[first + c]) add_copy(map, contents, first + c);
    const auto num_columns = std::ssize(columns);
    map.field_shape = {map.num_cells() / num_columns, num_columns};
  }
  if (map.num_cells() == 0)
    throw ConfigError("--area", "there is no cell of the forecast in it",
                      "north/west/south/east in degrees");
  return map;
}

namespace {

// Sets the cells of a regular grid, without weights.
void set_axes(CellMap& map, const RegularGrid& grid, const std::optional<Area>& area) {
  const Area all = area.value_or(Area());
  const double east = grid.east_step_deg, south = grid.south_step_deg;
  double span = all.east_deg - all.west_deg;
  if (span < 360.0) span = positive_longitude(span);
  const bool is_around = span >= 360.0 - kRounding_deg;
  if (is_around && !divides(east, 360.0))
    throw ConfigError("--grid", concat(east, " degrees do not divide 360 degrees"));
  if (!area && !divides(south, 180.0))
    throw ConfigError("--grid", concat(south, " degrees do not divide 180 degrees"));
  const auto columns = is_around ? std::llround(360.0 / east)
                                 : static_cast<long long>(span / east + kRounding_deg) + 1;
  const auto rows =
      static_cast<long long>((all.north_deg - all.south_deg) / south + kRounding_deg) + 1;
  for (long long r = 0; r < rows; ++r) {
    for (long long c = 0; c < columns; ++c) {
      map.latitudes_deg.push_back(all.north_deg - static_cast<double>(r) * south);
      map.longitudes_deg.push_back(all.west_deg + static_cast<double>(c) * east);
    }
  }
  map.field_shape = {rows, columns};
}

void add_nearest(CellMap& map, const ForecastContents& contents) {
  const graph::KdTree<double> tree(
      data::unit_vectors(contents.latitudes_deg, contents.longitudes_deg), 0);
  const graph::NeighbourLists nearest =
      tree.nearest(data::unit_vectors(map.latitudes_deg, map.longitudes_deg), 1, 0);
  map.sources = nearest.index;
  map.weights.assign(map.sources.size(), 1.0f);
  map.row_starts = nearest.offset;
}

// A row of boxes around the globe or a part of it: between two sines of latitude, each `step_deg`
// wide from `west_deg` on.
struct Band {
  double low = 0.0, high = 0.0;  // sines of latitude
  double west_deg = 0.0, step_deg = 0.0;
  int64_t num_boxes = 0, first_cell = 0;
};

// Weights of the Gaussian quadrature, which add up to 2, from the roots (sines) of its polynomial.
std::vector<double> quadrature_weights(const std::vector<CellRow>& rows) {
  const auto n = static_cast<double>(rows.size());
  std::vector<double> weights;
  double sum = 0.0;
  for (const CellRow& row : rows) {
    const double x = sine(row.latitude_deg);
    double before = 1.0, value = x;  // of degree k - 1 and k
    for (size_t k = 2; k < rows.size(); ++k) {
      const auto degree = static_cast<double>(k);
      const double next = ((2 * degree - 1) * x * value - (degree - 1) * before) / degree;
      before = std::exchange(value, next);
    }
    weights.push_back(2 * (1 - x * x) / (n * n * value * value));
    sum += weights.back();
  }
  for (double& weight : weights)
    weight *= 2.0 / sum;  // of what latitudes have been rounded to
  return weights;
}

// Sines of latitude between the rows, and beyond the first and last one.
std::vector<double> bounds_of(const CellRows& cells) {
  std::vector<double> bounds;
  if (cells.kind != CellRows::Kind::kRegularLatLon) {
    double bound = 1.0;
    bounds.push_back(bound);
    for (const double weight : quadrature_weights(cells.rows))
      bounds.push_back(bound -= weight);
    bounds.back() = -1.0;
    return bounds;
  }
  const auto half_step = (cells.rows[1].latitude_deg - cells.rows[0].latitude_deg) / 2;
  const auto bound = [&](double latitude) { return sine(std::clamp(latitude, -90.0, 90.0)); };
  bounds.push_back(bound(cells.rows[0].latitude_deg - half_step));
  for (const CellRow& row : cells.rows)
    bounds.push_back(bound(row.latitude_deg + half_step));
  return bounds;
}

std::vector<Band> bands_of(const CellRows& cells) {
  const std::vector<double> bounds = bounds_of(cells);
  std::vector<Band> bands;
  int64_t first_cell = 0;
  for (size_t r = 0; r < cells.rows.size(); ++r) {
    const CellRow& row = cells.rows[r];
    const double span = positive_longitude(row.last_deg - row.first_deg);
    double step = span / static_cast<double>(std::max<int64_t>(row.length - 1, 1));
    if (row.length == 1 || std::abs(span + step - 360.0) < 0.01)
      step = 360.0 / static_cast<double>(row.length);  // around the globe, without what is rounded
    bands.push_back({std::min(bounds[r], bounds[r + 1]), std::max(bounds[r], bounds[r + 1]),
                     row.first_deg - step / 2, step, row.length, first_cell});
    first_cell += row.length;
  }
  return bands;
}

// Calls `add` with the boxes of a band between two distances from its western side, below 360
// degrees, and how many degrees they share.
template <class Add>
void visit_boxes(const Band& band, double west_deg, double east_deg, const Add& add) {
  const auto first = static_cast<int64_t>(west_deg / band.step_deg);
  for (int64_t box = first; box < band.num_boxes; ++box) {
    const double begin = static_cast<double>(box) * band.step_deg;
    if (begin >= east_deg) return;
    const double shared = std::min(east_deg, begin + band.step_deg) - std::max(west_deg, begin);
    if (shared > 1e-12) add(band.first_cell + box, shared);
  }
}

// Adds the weights of one new cell, whose box is that of `box`.
void add_box(CellMap& map, const std::vector<Band>& bands, const Band& box) {
  const double area = (box.high - box.low) * box.step_deg;
  for (const Band& band : bands) {
    const double height = std::min(box.high, band.high) - std::max(box.low, band.low);
    if (height <= 1e-15) continue;
    const auto add = [&](int64_t cell, double width) {
      map.sources.push_back(static_cast<int32_t>(cell));
      map.weights.push_back(static_cast<float>(height * width / area));
    };
    const double from_band = box.west_deg - band.west_deg;
    const double west = from_band - std::floor(from_band / 360.0) * 360.0;
    const double east = west + box.step_deg;
    visit_boxes(band, west, std::min(east, 360.0), add);
    if (east > 360.0) visit_boxes(band, 0.0, east - 360.0, add);
  }
  map.row_starts.push_back(std::ssize(map.sources));
}

void add_conservative(CellMap& map, const ForecastContents& contents, const RegularGrid& grid) {
  const CellRows cells = find_cell_rows(contents.latitudes_deg, contents.longitudes_deg);
  if (cells.kind == CellRows::Kind::kUnstructured)
    throw ConfigError("--grid",
                      "cells of the forecast lie in no rows, so that boxes around them "
                      "are not known",
                      "--interpolation nearest");
  const std::vector<Band> bands = bands_of(cells);
  const auto columns = static_cast<size_t>(map.field_shape[1]);
  for (size_t first = 0; first < map.latitudes_deg.size(); first += columns) {
    const double latitude = map.latitudes_deg[first], half = grid.south_step_deg / 2;
    const double low = sine(std::max(latitude - half, -90.0));
    const double high = sine(std::min(latitude + half, 90.0));
    std::vector<Band> near;
    std::ranges::copy_if(bands, std::back_inserter(near),
                         [&](const Band& band) { return band.high > low && band.low < high; });
    for (size_t c = 0; c < columns; ++c)
      add_box(map, near,
              {.low = low,
               .high = high,
               .west_deg = map.longitudes_deg[first + c] - grid.east_step_deg / 2,
               .step_deg = grid.east_step_deg});
  }
}

class MappedFile : public ForecastFile {
 public:
  MappedFile(std::unique_ptr<ForecastFile> file, std::shared_ptr<const CellMap> map,
             int64_t threads)
      : file_(std::move(file)), map_(std::move(map)), threads_(threads) {}

  void write(int64_t lead_time, std::span<const float> fields) override {
    const auto from = static_cast<size_t>(map_->num_sources),
               to = static_cast<size_t>(map_->num_cells());
    const size_t num_fields = fields.size() / from;
    mapped_.resize(num_fields * to);
    for (size_t f = 0; f < num_fields; ++f)
      map_->apply(fields.subspan(f * from, from), std::span(mapped_).subspan(f * to, to), threads_);
    file_->write(lead_time, mapped_);
  }
  std::string keep() override { return file_->keep(); }
  void finish() override { file_->finish(); }

 private:
  std::unique_ptr<ForecastFile> file_;
  std::shared_ptr<const CellMap> map_;
  int64_t threads_;
  std::vector<float> mapped_;
};

}  // namespace

CellMap map_to_grid(const ForecastContents& contents, const RegularGrid& grid,
                    const std::optional<Area>& area) {
  CellMap map = empty_map(contents);
  set_axes(map, grid, area);
  if (grid.interpolation == Interpolation::kNearest)
    add_nearest(map, contents);
  else
    add_conservative(map, contents, grid);
  return map;
}

ForecastContents mapped_contents(ForecastContents contents, const CellMap& map) {
  contents.latitudes_deg = map.latitudes_deg;
  contents.longitudes_deg = map.longitudes_deg;
  contents.field_shape = map.field_shape;
  return contents;
}

std::unique_ptr<ForecastFile> map_fields(std::unique_ptr<ForecastFile> file,
                                         std::shared_ptr<const CellMap> map, int64_t threads) {
  return std::make_unique<MappedFile>(std::move(file), std::move(map), threads);
}

}  // namespace aifs::forecast
