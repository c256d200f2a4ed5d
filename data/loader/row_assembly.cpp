// SPDX-License-Identifier: Apache-2.0
#include "data/loader/row_assembly.h"

#include <array>
#include <cmath>

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

namespace {

[[noreturn]] void throw_nan(const SampleSource& source, int64_t row, int64_t column, int64_t cell) {
  const DatasetInfo& info = source.dataset->info();
  const std::string remark = source.dataset->remark(row);
  throw DataError(
      concat("'", info.name, "': variable '", info.variables[static_cast<size_t>(column)],
             "' is NaN on ", format_date(info.dates_s[static_cast<size_t>(row)]), " in cell ", cell,
             remark.empty() ? "" : concat(": ", remark)),
      "fill it with data.imputer, drop it, or list the date as missing");
}

}  // namespace

ColumnMaps::ColumnMaps(const SampleSource& source) {
  const DatasetInfo& info = source.dataset->info();
  for (int64_t c = 0; c < info.num_variables(); ++c) {
    const auto at = static_cast<size_t>(c);
    Column& column = columns_.emplace_back();
    column.map = {source.normaliser.mul[at], source.normaliser.add[at]};
    column.rule = source.remapper.rule_of(c);
    if (!source.imputer.imputes(c)) continue;
    const std::optional<float> fill = source.imputer.constant(c);
    column.is_filled = true;
    column.fill = fill.value_or(0.0f);
    independent_ = independent_ && fill && info.ensemble_size == 1;
  }
}

void RowAssembly::put(const FieldRun& run) {
  const ColumnMaps::Column& column = maps_[run.column];
  const int64_t width = source_.dataset->info().num_variables();
  float* out = place_.fields.data() + (run.member * width + run.column) * place_.nodes.size() +
               run.first_cell - place_.nodes.begin;
  if (column.rule) return put_slowly(run, column, out);
  const bool clean = run.values ? map_floats(run.values, run.stride, run.count, column.map, out)
                                : map_planes(run.planes, run.plane_bytes, run.count, column.map,
                                             place_.streams, out);
  if (!clean) put_slowly(run, column, out);
}

// With NaN, or with a rule: a few values at a time.
void RowAssembly::put_slowly(const FieldRun& run, const ColumnMaps::Column& column, float* out) {
  constexpr int64_t kTile = 1024;
  std::array<float, kTile> tile;
  const int64_t width = source_.dataset->info().num_variables();
  for (int64_t first = 0; first < run.count; first += kTile) {
    const int64_t count = std::min(kTile, run.count - first);
    if (run.values) {
      for (int64_t i = 0; i < count; ++i)
        tile[static_cast<size_t>(i)] = run.values[(first + i) * run.stride];
    } else {
      join_planes(run.planes + first, run.plane_bytes, count, tile.data());
    }
    for (int64_t i = 0; i < count; ++i) {
      float& x = tile[static_cast<size_t>(i)];
      if (std::isnan(x)) {
        const int64_t cell = run.first_cell + first + i;
        if (!column.is_filled) throw_nan(source_, place_.row, run.column, cell);
        x = column.fill;
        const int64_t mark = (cell - place_.nodes.begin) * width + run.column;
        if (!place_.nan_mask.empty()) place_.nan_mask[static_cast<size_t>(mark)] = 1;
      }
      if (column.rule) x = column.rule->forward(x);
    }
    map_floats(tile.data(), 1, count, column.map, out + first);
  }
}

void read_whole_row(const SampleSource& source, const ColumnMaps& maps, const RowPlace& place,
                    ReadScratch& scratch) {
  const DatasetInfo& info = source.dataset->info();
  const int64_t nodes = place.nodes.size(), width = info.num_variables();
  const SampleShape shape{1, info.ensemble_size, nodes, width};
  scratch.floats.resize(static_cast<size_t>(shape.size()) * sizeof(float));
  auto* values = static_cast<float*>(static_cast<void*>(scratch.floats.data()));
  const std::span<float> sample(values, static_cast<size_t>(shape.size()));
  source.dataset->read(place.row, place.nodes, sample);
  source.imputer.forward(sample, shape, place.nan_mask);
  if (const int64_t at = first_nan(sample); at >= 0)
    throw_nan(source, place.row, at % width, place.nodes.begin + at / width % nodes);
  source.remapper.forward(sample);
  for (int64_t e = 0; e < info.ensemble_size; ++e) {
    for (int64_t c = 0; c < width; ++c) {
      map_floats(values + e * nodes * width + c, width, nodes, maps[c].map,
                 place.fields.data() + (e * width + c) * nodes);
    }
  }
}

}  // namespace aifs::data
