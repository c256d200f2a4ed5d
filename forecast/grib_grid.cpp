// SPDX-License-Identifier: Apache-2.0
#include "forecast/grib_grid.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace aifs::forecast {

namespace {

// In microdegrees, which are all that edition 2 has.
double rounded(double degrees) {
  return std::round(degrees * 1e6) / 1e6;
}

void set_corners(const CellRows& cells, data::GribMessage& message) {
  const CellRow& longest = *std::ranges::max_element(cells.rows, {}, &CellRow::length);
  message.set("latitudeOfFirstGridPointInDegrees", rounded(cells.rows.front().latitude_deg));
  message.set("longitudeOfFirstGridPointInDegrees", rounded(positive_longitude(longest.first_deg)));
  message.set("latitudeOfLastGridPointInDegrees", rounded(cells.rows.back().latitude_deg));
  message.set("longitudeOfLastGridPointInDegrees", rounded(positive_longitude(longest.last_deg)));
}

// A step that is no whole number of microdegrees is left for readers to compute.
void set_step(const char* axis, double step_deg, data::GribMessage& message) {
  const std::string key = std::string(axis) + "DirectionIncrement";
  const bool is_exact = std::abs(step_deg - rounded(step_deg)) < 1e-8;
  message.set(key + "Given", int64_t{is_exact});
  if (is_exact)
    message.set(key + "InDegrees", rounded(step_deg));
  else
    message.set_missing(key);
}

void set_regular(const CellRows& cells, data::GribMessage& message) {
  const CellRow& row = cells.rows.front();
  const double last_deg = cells.rows.back().latitude_deg;
  const auto num_rows = std::ssize(cells.rows);
  message.set("Ni", row.length);
  message.set("Nj", int64_t{num_rows});
  message.set("jScansPositively", int64_t{last_deg > row.latitude_deg});
  set_corners(cells, message);
  set_step("i",
           positive_longitude(row.last_deg - row.first_deg) / static_cast<double>(row.length - 1),
           message);
  if (cells.kind == CellRows::Kind::kRegularGaussian) {
    message.set("N", int64_t{num_rows / 2});
    return;
  }
  set_step("j", std::abs(last_deg - row.latitude_deg) / static_cast<double>(num_rows - 1), message);
}

void set_reduced(const CellRows& cells, data::GribMessage& message) {
  std::vector<int64_t> lengths;
  for (const CellRow& row : cells.rows)
    lengths.push_back(row.length);
  message.set("N", int64_t{std::ssize(lengths) / 2});
  message.set("Nj", int64_t{std::ssize(lengths)});
  message.set_missing("Ni");
  message.set("PLPresent", int64_t{1});
  message.set("pl", std::span<const int64_t>(lengths));
  message.set("iDirectionIncrementGiven", int64_t{0});
  message.set_missing("iDirectionIncrement");
  set_corners(cells, message);
}

}  // namespace

void set_grid(const CellRows& cells, data::GribMessage& message) {
  using Kind = CellRows::Kind;
  switch (cells.kind) {
    case Kind::kReducedGaussian:
      message.set("gridType", std::string("reduced_gg"));
      return set_reduced(cells, message);
    case Kind::kRegularGaussian:
      message.set("gridType", std::string("regular_gg"));
      return set_regular(cells, message);
    case Kind::kRegularLatLon:
      message.set("gridType", std::string("regular_ll"));
      return set_regular(cells, message);
    case Kind::kUnstructured:
      message.set("gridType", std::string("unstructured_grid"));
      message.set("numberOfDataPoints", cells.num_cells);
      return;
  }
}

}  // namespace aifs::forecast
