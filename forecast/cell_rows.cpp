// SPDX-License-Identifier: Apache-2.0
#include "forecast/cell_rows.h"

#include <algorithm>
#include <cmath>

#include "graph/nodes/gaussian_grid.h"

namespace aifs::forecast {

namespace {

constexpr double kSame_deg = 1e-3;

bool is_same(double a_deg, double b_deg) {
  return std::abs(std::remainder(a_deg - b_deg, 360.0)) < kSame_deg;
}

// Rows whose cells are apart by `step_deg` of the row's length; empty if some are not.
template <class Step>
std::vector<CellRow> find_rows(std::span<const double> latitudes,
                               std::span<const double> longitudes, const Step& step_deg) {
  std::vector<CellRow> rows;
  for (size_t begin = 0, end = 0; begin < latitudes.size(); begin = end) {
    while (end < latitudes.size() && std::abs(latitudes[end] - latitudes[begin]) < kSame_deg / 10)
      ++end;
    const size_t length = end - begin;
    const double step = step_deg(length);
    for (size_t i = 1; i < length; ++i) {
      if (!is_same(longitudes[begin + i], longitudes[begin] + static_cast<double>(i) * step))
        return {};
    }
    rows.push_back(
        {latitudes[begin], longitudes[begin], longitudes[end - 1], static_cast<int64_t>(length)});
  }
  return rows;
}

bool are_gaussian(const std::vector<CellRow>& rows) {
  constexpr size_t kMostRows = 2 * 8000;  // of grids that there are: N up to 8000
  if (rows.size() < 2 || rows.size() % 2 != 0 || rows.size() > kMostRows) return false;
  if (!std::ranges::all_of(rows, [](const CellRow& row) { return is_same(row.first_deg, 0.0); }))
    return false;
  const std::vector<double> roots =
      graph::gaussian_latitudes(static_cast<int64_t>(rows.size() / 2));
  for (size_t i = 0; i < rows.size(); ++i)
    if (std::abs(rows[i].latitude_deg - roots[i]) > kSame_deg) return false;
  return true;
}

bool have_one_length(const std::vector<CellRow>& rows) {
  return std::ranges::all_of(rows,
                             [&](const CellRow& row) { return row.length == rows.front().length; });
}

// True for rows of one length that cross the same longitudes, equally far apart.
bool are_regular(const std::vector<CellRow>& rows) {
  if (rows.size() < 2 || rows.front().length < 2 || !have_one_length(rows)) return false;
  const double step =
      (rows.back().latitude_deg - rows.front().latitude_deg) / static_cast<double>(rows.size() - 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double latitude = rows.front().latitude_deg + static_cast<double>(i) * step;
    if (!is_same(rows[i].first_deg, rows.front().first_deg) ||
        std::abs(rows[i].latitude_deg - latitude) > kSame_deg)
      return false;
  }
  return std::abs(step) > kSame_deg;
}

}  // namespace

double positive_longitude(double longitude_deg) {
  const double turned = std::fmod(std::fmod(longitude_deg, 360.0) + 360.0, 360.0);
  return turned > 360.0 - 1e-7 ? 0.0 : turned;
}

CellRows find_cell_rows(std::span<const double> latitudes_deg,
                        std::span<const double> longitudes_deg) {
  CellRows found{.num_cells = static_cast<int64_t>(latitudes_deg.size())};
  const auto around = [](size_t length) { return 360.0 / static_cast<double>(length); };
  std::vector<CellRow> rows = find_rows(latitudes_deg, longitudes_deg, around);
  if (are_gaussian(rows)) {
    found.kind =
        have_one_length(rows) ? CellRows::Kind::kRegularGaussian : CellRows::Kind::kReducedGaussian;
    found.rows = std::move(rows);
    return found;
  }
  // The mean spacing of the first row: that of two cells has more of what was rounded.
  const auto as_first_row = [&](size_t length) {
    if (length < 2) return 0.0;
    return positive_longitude(longitudes_deg[length - 1] - longitudes_deg[0]) /
           static_cast<double>(length - 1);
  };
  rows = find_rows(latitudes_deg, longitudes_deg, as_first_row);
  if (!are_regular(rows)) return found;
  found.kind = CellRows::Kind::kRegularLatLon;
  found.rows = std::move(rows);
  return found;
}

}  // namespace aifs::forecast
