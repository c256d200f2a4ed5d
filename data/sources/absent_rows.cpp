// SPDX-License-Identifier: Apache-2.0
#include "data/sources/absent_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/anemoi_row.h"

namespace aifs::data {

namespace {

constexpr size_t kMostDatesShown = 3;
constexpr int64_t kMostLists = 100000;  // of folders: some seconds, on slow file systems a minute
// Beyond the stored range by this share of it a value was never seen and hardly meant.
constexpr double kFar = 0.25;

std::vector<std::string> far_from(double value, const DatasetInfo& info) {
  std::vector<std::string> names;
  for (size_t v = 0; v < info.variables.size(); ++v) {
    const double low = info.statistics.minimum[v], high = info.statistics.maximum[v];
    const double margin = kFar * (high - low);
    if (value < low - margin || value > high + margin) names.push_back(info.variables[v]);
  }
  return names;
}

}  // namespace

std::optional<AbsentRows> find_absent_rows(const zarr::Array& data,
                                           std::span<const int64_t> stored_rows,
                                           std::span<const int64_t> variables) {
  const zarr::ArrayMeta& meta = data.meta();
  const std::vector<int64_t>& file = meta.sharding ? meta.sharding->shape : meta.chunk.shape;
  std::set<int64_t> needed;  // along the axis of variables
  for (const int64_t variable : variables)
    needed.insert(variable / file[kVariable]);
  const auto along = [&](size_t axis) { return (meta.shape[axis] + file[axis] - 1) / file[axis]; };
  const int64_t files_per_row = static_cast<int64_t>(needed.size()) * along(kMember) * along(kCell);

  AbsentRows absent;
  std::unordered_map<int64_t, int64_t> present;  // files, along the axis of time
  std::vector<int64_t> folders;
  const auto count = [&](std::span<const int64_t> chunk) {
    if (chunk.size() == 1) {
      folders.push_back(chunk[kTime]);
    } else if (needed.contains(chunk[kVariable]) && chunk[kMember] < along(kMember) &&
               chunk[kCell] < along(kCell)) {
      ++present[chunk[kTime]];
    }
  };
  if (!data.list_chunks(count)) return std::nullopt;
  // Folders of one date: its own, those of its variables, and those of their members.
  const int64_t lists = 1 + along(kVariable) * (1 + along(kMember));
  absent.is_exact = static_cast<int64_t>(folders.size()) * lists <= kMostLists;
  for (const int64_t folder : folders) {
    if (!absent.is_exact)
      present[folder] = files_per_row;
    else if (!data.list_chunks_below(folder, count))
      return std::nullopt;
  }
  for (size_t i = 0; i < stored_rows.size(); ++i) {
    if (stored_rows[i] < 0) continue;
    const auto found = present.find(stored_rows[i] / file[kTime]);
    if (found == present.end() || found->second < files_per_row)
      absent.rows.push_back(static_cast<int64_t>(i));
  }
  return absent;
}

std::string describe_absent_rows(const zarr::ArrayMeta& meta, const DatasetInfo& info,
                                 std::span<const int64_t> rows) {
  std::string dates;
  for (size_t i = 0; i < std::min(rows.size(), kMostDatesShown); ++i) {
    dates += concat(i == 0 ? "" : ", ", format_date(info.dates_s[static_cast<size_t>(rows[i])]));
  }
  if (rows.size() > kMostDatesShown) dates += ", ...";
  const std::string fill = meta.fill.text(meta.type);
  std::string text =
      concat("dates without a chunk, which read as the fill_value ", fill, " of '", meta.file,
             "': ", rows.size(), " of ", info.num_rows(), " (", dates, ")");
  const double value = meta.fill.as<double>(meta.type);
  if (std::isnan(value)) {
    return text + "; a run stops at them where data.imputer does not fill every variable";
  }
  const std::vector<std::string> far = far_from(value, info);
  if (far.empty()) return text;
  std::string names;
  for (const std::string& name : far)
    names += concat(names.empty() ? "" : ", ", name);
  return concat(text, "; ", fill, " lies far outside the stored minimum and maximum of ", names,
                ": are chunks lost?");
}

}  // namespace aifs::data
