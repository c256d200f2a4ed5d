// SPDX-License-Identifier: Apache-2.0
#include "verify/truth.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "data/fields/time_axis.h"

namespace aifs::verify {

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

DatasetCells::DatasetCells(const data::Dataset& dataset, const ForecastReader& forecast,
                           const std::vector<std::string>& variables, FieldMap map)
    : dataset_(dataset),
      cells_(map ? std::vector<int64_t>() : cells_in(dataset.info(), forecast)),
      num_cells_(static_cast<size_t>(forecast.num_cells())),
      map_(std::move(map)) {
  for (const std::string& name : variables)
    columns_.push_back(dataset.info().column(name));
}

std::vector<float> DatasetCells::read(int64_t row, data::ReadScratch& scratch) const {
  const data::DatasetInfo& info = dataset_.info();
  const auto all = static_cast<size_t>(info.num_nodes());
  std::vector<float> fields(static_cast<size_t>(info.ensemble_size) * columns_.size() * all);
  data::read_fields(dataset_, row, {0, info.num_nodes()}, columns_, scratch, fields.data());
  fields.resize(columns_.size() * all);
  if (map_) {
    std::vector<float> mapped(columns_.size() * num_cells_);
    for (size_t v = 0; v < columns_.size(); ++v)
      map_.apply(std::span(fields).subspan(v * all, all),
                 std::span(mapped).subspan(v * num_cells_, num_cells_));
    return mapped;
  }
  if (cells_.size() == all) return fields;
  std::vector<float> chosen;
  chosen.reserve(columns_.size() * cells_.size());
  for (size_t v = 0; v < columns_.size(); ++v)
    for (const int64_t cell : cells_)
      chosen.push_back(fields[v * all + static_cast<size_t>(cell)]);
  return chosen;
}

Truth::Truth(const data::Dataset& dataset, const ForecastReader& forecast,
             const std::vector<std::string>& variables, FieldMap map)
    : cells_(dataset, forecast, variables, std::move(map)),
      path_(forecast.path()),
      latitudes_deg_(forecast.latitudes_deg()),
      longitudes_deg_(forecast.longitudes_deg()) {}

void Truth::check_cells(const ForecastReader& forecast) const {
  if (forecast.latitudes_deg() == latitudes_deg_ && forecast.longitudes_deg() == longitudes_deg_)
    return;
  throw DataError(concat("'", forecast.path(), "' and '", path_, "' have different cells"),
                  "verify forecasts of one grid at a time");
}

std::shared_ptr<const std::vector<float>> Truth::at(int64_t date_s) {
  constexpr size_t kMostBytes = size_t{2} << 30;
  if (const auto kept = kept_.find(date_s); kept != kept_.end()) return kept->second;
  const data::DatasetInfo& info = cells_.dataset().info();
  const int64_t row = data::find_row(info.dates_s, info.missing_rows, date_s);
  std::shared_ptr<const std::vector<float>> fields;
  if (row >= 0) fields = std::make_shared<std::vector<float>>(cells_.read(row, scratch_));
  const size_t bytes =
      std::max<size_t>(1, cells_.num_variables() * cells_.num_cells() * sizeof(float));
  while (!order_.empty() && (order_.size() + 1) * bytes > kMostBytes) {
    kept_.erase(order_.front());
    order_.pop_front();
  }
  kept_[date_s] = fields;
  order_.push_back(date_s);
  return fields;
}

}  // namespace aifs::verify
