// SPDX-License-Identifier: Apache-2.0
#include "data/combine/dataset_views.h"

#include <algorithm>
#include <set>

#include "data/combine/combined_dataset.h"
#include "data/combine/computed_dataset.h"

namespace aifs::data {

namespace {

DatasetPtr view(DatasetInfo info, CombinedDataset::Part part) {
  std::vector<CombinedDataset::Part> parts;
  parts.push_back(std::move(part));
  return std::make_shared<CombinedDataset>(std::move(info), std::move(parts));
}

bool is_missing(const DatasetInfo& info, int64_t row) {
  return std::binary_search(info.missing_rows.begin(), info.missing_rows.end(), row);
}

// The place of each of `count` things in a list of some of them, -1: not there.
std::vector<int64_t> places(const std::vector<int64_t>& some, int64_t count) {
  std::vector<int64_t> place(static_cast<size_t>(count), -1);
  for (size_t i = 0; i < some.size(); ++i)
    place[static_cast<size_t>(some[i])] = static_cast<int64_t>(i);
  return place;
}

// Closest rows before and after a missing one that are there, -1: none.
std::pair<int64_t, int64_t> rows_around(const DatasetInfo& info, int64_t row) {
  int64_t before = row, after = row;
  while (before >= 0 && is_missing(info, before))
    --before;
  while (after < info.num_rows() && is_missing(info, after))
    ++after;
  return {before, after == info.num_rows() ? -1 : after};
}

// Factors are of the type of the data, as in the reference.
void scale(const std::vector<UnitMap>& maps, bool is_float64, bool shifts, Statistics& statistics) {
  const auto rounded = [&](double x) {
    return is_float64 ? x : static_cast<double>(static_cast<float>(x));
  };
  for (size_t v = 0; v < maps.size(); ++v) {
    const double a = rounded(maps[v].a), b = shifts ? rounded(maps[v].b) : 0.0;
    for (auto* values : {&statistics.mean, &statistics.minimum, &statistics.maximum})
      (*values)[v] = (*values)[v] * a + b;
    statistics.stdev[v] *= a;
  }
}

}  // namespace

DatasetPtr with_rows(const DatasetPtr& dataset, const std::vector<int64_t>& rows) {
  DatasetInfo info = dataset->info();
  keep_rows(rows, info);
  return view(std::move(info), {.source = dataset, .rows = rows});
}

DatasetPtr with_columns(const DatasetPtr& dataset, const std::vector<int64_t>& columns) {
  DatasetInfo info = dataset->info();
  const int64_t width = info.num_variables();
  keep_columns(columns, info);
  return view(std::move(info), {.source = dataset, .columns = places(columns, width)});
}

DatasetPtr with_members(const DatasetPtr& dataset, const std::vector<int64_t>& members) {
  DatasetInfo info = dataset->info();
  const int64_t count = info.ensemble_size;
  info.ensemble_size = static_cast<int64_t>(members.size());
  return view(std::move(info), {.source = dataset, .members = places(members, count)});
}

DatasetPtr with_cells(const DatasetPtr& dataset, const std::vector<int64_t>& cells,
                      const std::vector<int64_t>& field_shape) {
  DatasetInfo info = dataset->info();
  for (auto* coordinates : {&info.latitudes_deg, &info.longitudes_deg}) {
    std::vector<double> kept;
    for (const int64_t cell : cells)
      kept.push_back((*coordinates)[static_cast<size_t>(cell)]);
    *coordinates = std::move(kept);
  }
  const auto count = static_cast<int64_t>(cells.size());
  info.field_shape = field_shape.empty() ? std::vector<int64_t>{count} : field_shape;
  info.grids.clear();
  return view(std::move(info), {.source = dataset, .cells = cells});
}

DatasetPtr with_names(const DatasetPtr& dataset, const std::vector<std::string>& names) {
  DatasetInfo info = dataset->info();
  for (std::string& constant : info.constant_fields)
    constant = names[static_cast<size_t>(info.column(constant))];
  info.variables = names;
  return view(std::move(info), {.source = dataset});
}

DatasetPtr with_maps(const DatasetPtr& dataset, const std::vector<UnitMap>& maps) {
  DatasetInfo info = dataset->info();
  scale(maps, info.is_float64, true, info.statistics);
  for (auto& [difference_s, statistics] : info.tendencies)
    scale(maps, info.is_float64, false, statistics);
  return view(std::move(info), {.source = dataset, .maps = maps});
}

DatasetPtr with_statistics(const DatasetPtr& dataset, const std::optional<Statistics>& statistics,
                           const std::optional<std::map<int64_t, Statistics>>& tendencies) {
  DatasetInfo info = dataset->info();
  if (statistics) info.statistics = *statistics;
  if (tendencies) info.tendencies = *tendencies;
  return view(std::move(info), {.source = dataset});
}

DatasetPtr with_missing(const DatasetPtr& dataset, const std::vector<int64_t>& rows) {
  DatasetInfo info = dataset->info();
  std::set<int64_t> missing(info.missing_rows.begin(), info.missing_rows.end());
  missing.insert(rows.begin(), rows.end());
  info.missing_rows.assign(missing.begin(), missing.end());
  return view(std::move(info), {.source = dataset});
}

DatasetPtr with_filled_rows(const DatasetPtr& dataset, MissingFill fill) {
  DatasetInfo info = dataset->info();
  std::vector<int64_t> missing;
  std::vector<RowMix> mixes;
  for (int64_t row = 0; row < info.num_rows(); ++row) {
    RowMix& mix = mixes.emplace_back();
    mix.rows = {row};
    if (!is_missing(info, row)) continue;
    const auto [before, after] = rows_around(info, row);
    if (fill == MissingFill::kClosest && (before >= 0 || after >= 0)) {
      const bool takes_before = after < 0 || (before >= 0 && row - before < after - row);
      mix.rows = {takes_before ? before : after};
    } else if (before >= 0 && after >= 0) {
      mix = {.kind = RowMix::Kind::kBlend,
             .rows = {before, after},
             .alpha = static_cast<double>(row - before) / static_cast<double>(after - before)};
    } else {
      missing.push_back(row);
      mix.rows.clear();
    }
  }
  info.missing_rows = missing;
  return mix_rows(dataset, std::move(info), std::move(mixes));
}

DatasetPtr with_rows_between(const DatasetPtr& dataset, int64_t ratio) {
  DatasetInfo info = dataset->info();
  const std::vector<int64_t> dates_s = info.dates_s;
  const int64_t step_s = info.frequency_s / ratio;
  std::vector<RowMix> mixes;
  std::vector<int64_t> missing;
  info.dates_s.clear();
  for (int64_t source = 0; source < static_cast<int64_t>(dates_s.size()); ++source) {
    const bool is_last = source + 1 == static_cast<int64_t>(dates_s.size());
    for (int64_t i = 0; i < (is_last ? 1 : ratio); ++i) {
      info.dates_s.push_back(dates_s[static_cast<size_t>(source)] + i * step_s);
      RowMix& mix = mixes.emplace_back();
      mix.rows = {source};
      bool is_absent = is_missing(dataset->info(), source);
      if (i > 0) {
        mix = {.kind = RowMix::Kind::kBlend,
               .rows = {source, source + 1},
               .alpha = static_cast<double>(i) * (1.0 / static_cast<double>(ratio)),
               .in_double = true};
        is_absent = is_absent || is_missing(dataset->info(), source + 1);
      }
      if (!is_absent) continue;
      missing.push_back(static_cast<int64_t>(mixes.size()) - 1);
      mix.rows.clear();
    }
  }
  info.frequency_s = step_s;
  info.missing_rows = std::move(missing);
  return mix_rows(dataset, std::move(info), std::move(mixes));
}

DatasetPtr with_means(const DatasetPtr& dataset, int64_t before, int64_t after) {
  const DatasetInfo& all = dataset->info();
  DatasetInfo info = all;
  info.dates_s.assign(all.dates_s.begin() + before, all.dates_s.end() - after);
  info.missing_rows.clear();
  std::vector<RowMix> mixes(info.dates_s.size());
  for (size_t row = 0; row < mixes.size(); ++row) {
    mixes[row].kind = RowMix::Kind::kMean;
    for (int64_t i = 0; i <= before + after; ++i)
      mixes[row].rows.push_back(static_cast<int64_t>(row) + i);
    if (std::any_of(mixes[row].rows.begin(), mixes[row].rows.end(),
                    [&](int64_t source) { return is_missing(all, source); })) {
      info.missing_rows.push_back(static_cast<int64_t>(row));
      mixes[row].rows.clear();
    }
  }
  return mix_rows(dataset, std::move(info), std::move(mixes));
}

}  // namespace aifs::data
