// SPDX-License-Identifier: Apache-2.0
#include "data/sources/netcdf_dataset.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "core/file_io.h"
#include "core/log.h"
#include "core/time.h"
#include "data/fields/moments.h"
#include "data/fields/selection.h"
#include "data/fields/time_axis.h"
#include "data/sources/cf_fields.h"
#include "data/sources/computed_forcings.h"
#include "data/sources/statistics_file.h"

namespace aifs::data {

namespace {

using Json = nlohmann::ordered_json;

// The last files that were read stay open.
class FilePool {
 public:
  std::shared_ptr<const NetcdfFile> open(const std::string& path) {
    constexpr size_t kMostOpen = 64;
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(files_, [&](const auto& file) { return file->path() == path; });
    if (found != files_.end()) {
      files_.splice(files_.begin(), files_, found);
    } else {
      files_.push_front(std::make_shared<const NetcdfFile>(path));
      if (files_.size() > kMostOpen) files_.pop_back();
    }
    return files_.front();
  }

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<const NetcdfFile>> files_;  // the latest first
};

// A field of one file.
struct Source {
  size_t file = 0;
  CfField field;
};

// A variable of the dataset: fields of files, or a forcing.
struct Column {
  std::string name;
  bool is_forcing = false;
  std::vector<Source> sources;
  // By row: which source has it, and at which index of its time axis; -1: none.
  struct Place {
    int32_t source = -1;
    int64_t time = 0;
  };
  std::vector<Place> places;  // empty: the same at all dates, from the first source

  bool is_constant() const { return !is_forcing && places.empty(); }
};

std::string file_text(const std::string& path) {
  return concat("netCDF file '", path, "'");
}

void check_options(const NetcdfOptions& options, const std::string& path) {
  for (const std::string& name : options.forcings) {
    if (is_computed_forcing(name)) continue;
    std::string known;
    for (const std::string& one : computed_forcing_names())
      known += concat(known.empty() ? "" : ", ", one);
    throw ConfigError(path + ".forcings", concat("'", name, "' cannot be computed"),
                      concat(known, " can"));
  }
}

// Size and time of change: what tells a file from one of the same name later.
Json identity_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw DataError(concat("cannot examine '", path, "': ", system_error_text()));
  return {absolute_path(path).string(), static_cast<int64_t>(info.st_size),
          static_cast<int64_t>(info.st_mtim.tv_sec), static_cast<int64_t>(info.st_mtim.tv_nsec)};
}

}  // namespace

struct NetcdfDataset::State {
  explicit State(const DatasetOptions& given) : options(given.netcdf), section(given.path) {
    check_options(options, section);
    read_files();
    make_columns();
    make_rows();
    find_statistics();
    select(given);
  }

  void read_files();
  void make_columns();
  void make_rows();
  void turn_rows();
  void find_statistics();
  void select(const DatasetOptions& given);
  KeptStatistics compute(const StatisticsWindow& window,
                         const std::vector<int64_t>& deltas_s) const;
  void read_column(const Column& column, int64_t row, NodeRange nodes, std::span<float> out) const;
  const CfGrid& grid() const { return *files.front().grid; }

  NetcdfOptions options;
  std::string section;               // path of the section in the configuration
  DatasetInfo info;                  // of all; later of what is selected
  std::vector<int64_t> all_dates_s;  // of all rows
  std::vector<int64_t> selected_rows, selected_columns;
  std::vector<CfFile> files;
  std::vector<Column> columns;
  int64_t turn = 0;  // the first column of the dataset is this one of the files
  std::vector<std::string> notes;
  mutable FilePool pool;
};

void NetcdfDataset::State::read_files() {
  std::set<std::string> used;
  for (const std::string& path : netcdf_files(options.files, section + ".netcdf")) {
    CfFile file = read_cf_file(*pool.open(path), options.variables);
    for (const CfField& field : file.fields)
      used.insert(field.variable.name);
    if (file.fields.empty()) {
      notes.push_back(concat(file_text(path), " has no fields that are used"));
      continue;
    }
    if (!files.empty() && (file.grid->latitudes_deg != grid().latitudes_deg ||
                           file.grid->longitudes_deg != grid().longitudes_deg)) {
      throw DataError(concat(file_text(path), " has another grid than '", files.front().path, "'"));
    }
    files.push_back(std::move(file));
  }
  for (const auto& [name, renamed] : options.variables) {
    if (!used.contains(name))
      throw ConfigError(section + ".variables", concat("no file has the field '", name, "'"));
  }
  if (files.empty())
    throw DataError(concat(file_text(netcdf_files(options.files, section + ".netcdf").front()),
                           " has no fields on a grid of latitudes and longitudes"),
                    "fields and coordinates are told by the CF conventions");
  info.name = files.size() == 1 ? files.front().path
                                : concat(files.front().path, " and ", files.size() - 1, " more");
  info.latitudes_deg = grid().latitudes_deg;
  info.longitudes_deg = grid().longitudes_deg;
  info.field_shape = grid().shape;
  if (options.longitudes_from_zero) turn_rows();
}

void NetcdfDataset::State::turn_rows() {
  if (grid().shape.size() != 2)
    throw ConfigError(section + ".longitudes_from_zero", "the grid has no rows");
  const int64_t width = grid().shape[1];
  const auto positive = [](double longitude) {
    return longitude < 0.0 ? longitude + 360.0 : longitude;
  };
  for (int64_t i = 1; i < width; ++i) {
    if (positive(info.longitudes_deg[static_cast<size_t>(i)]) <
        positive(info.longitudes_deg[static_cast<size_t>(turn)]))
      turn = i;
  }
  for (size_t n = 0; n < info.longitudes_deg.size(); ++n) {
    const auto cell = static_cast<int64_t>(n);
    const int64_t from = cell / width * width + (cell % width + turn) % width;
    info.longitudes_deg[n] = positive(grid().longitudes_deg[static_cast<size_t>(from)]);
    info.latitudes_deg[n] = grid().latitudes_deg[static_cast<size_t>(from)];
  }
}

void NetcdfDataset::State::make_columns() {
  std::map<std::string, Column> by_name;
  for (size_t f = 0; f < files.size(); ++f) {
    for (const CfField& field : files[f].fields) {
      Column& column = by_name[field.name];
      column.name = field.name;
      if (!column.sources.empty() && column.sources.front().field.members != field.members)
        throw DataError(concat(file_text(files[f].path), ", variable '", field.variable.name,
                               "' has ", field.members, " members, '",
                               files[column.sources.front().file].path, "' has ",
                               column.sources.front().field.members));
      column.sources.push_back({f, field});
      info.ensemble_size = std::max(info.ensemble_size, field.members);
    }
  }
  for (const std::string& name : options.forcings) {
    if (by_name.contains(name))
      throw ConfigError(section + ".forcings",
                        concat("'", name, "' is a field of '",
                               files[by_name[name].sources.front().file].path, "'"));
    by_name[name] = {.name = name, .is_forcing = true, .sources = {}, .places = {}};
  }
  for (auto& [name, column] : by_name) {
    const bool fits = column.is_forcing || column.sources.front().field.members == 1 ||
                      column.sources.front().field.members == info.ensemble_size;
    if (!fits)
      throw DataError(concat("'", info.name, "': '", name, "' has other members than others"));
    info.variables.push_back(name);
    columns.push_back(std::move(column));
  }
}

void NetcdfDataset::State::make_rows() {
  std::set<int64_t> dates;
  for (const CfFile& file : files) {
    for (const auto& [dimension, dates_s] : file.dates_s)
      dates.insert(dates_s.begin(), dates_s.end());
  }
  if (dates.size() < 2)
    throw DataError(
        concat("'", info.name, "' has ", dates.size(), " dates, at least two are needed"));
  const std::vector<int64_t> stored(dates.begin(), dates.end());
  int64_t step_s = stored[1] - stored[0];
  for (size_t i = 1; i < stored.size(); ++i)
    step_s = std::min(step_s, stored[i] - stored[i - 1]);
  TimeAxis axis;
  try {
    axis = make_time_axis(stored, step_s, {});
  } catch (const DataError& error) {
    throw DataError(concat("'", info.name, "': ", error.what()), error.hint());
  }
  info.dates_s = std::move(axis.dates_s);
  info.frequency_s = axis.frequency_s;
  all_dates_s = info.dates_s;
  std::vector<bool> is_missing(info.dates_s.size(), false);
  for (Column& column : columns) {
    const bool varies =
        !column.is_forcing &&
        std::ranges::any_of(column.sources, [](const Source& s) { return s.field.time_axis >= 0; });
    if (column.is_constant() && !varies) info.constant_fields.push_back(column.name);
    if (column.is_forcing && is_constant_forcing(column.name))
      info.constant_fields.push_back(column.name);
    if (!varies) continue;
    column.places.resize(info.dates_s.size());
    for (size_t s = 0; s < column.sources.size(); ++s) {
      const Source& source = column.sources[s];
      const CfFile& file = files[source.file];
      if (source.field.time_axis < 0)
        throw DataError(concat(file_text(file.path), ", variable '", source.field.variable.name,
                               "' has no time, in other files it has"));
      const std::vector<int64_t>& own = file.dates_s.at(
          source.field.variable.dimensions[static_cast<size_t>(source.field.time_axis)]);
      for (size_t t = 0; t < own.size(); ++t) {
        const auto row = static_cast<size_t>((own[t] - info.dates_s.front()) / info.frequency_s);
        Column::Place& place = column.places[row];
        if (place.source >= 0)
          throw DataError(concat(file_text(file.path), ": ", format_date(own[t]), " of '",
                                 column.name, "' is there twice, also in '",
                                 files[column.sources[static_cast<size_t>(place.source)].file].path,
                                 "'"));
        place = {static_cast<int32_t>(s), static_cast<int64_t>(t)};
      }
    }
    for (size_t row = 0; row < is_missing.size(); ++row)
      is_missing[row] = is_missing[row] || column.places[row].source < 0;
  }
  for (size_t row = 0; row < is_missing.size(); ++row) {
    if (is_missing[row]) info.missing_rows.push_back(static_cast<int64_t>(row));
  }
  if (info.missing_rows.size() == info.dates_s.size())
    throw DataError(concat("'", info.name, "': no date has all variables"),
                    "do the files name the same times?");
}

KeptStatistics NetcdfDataset::State::compute(const StatisticsWindow& window,
                                             const std::vector<int64_t>& deltas_s) const {
  const int64_t cells = info.num_nodes(), members = info.ensemble_size;
  const RowFields<float> read = [&](int64_t row, std::span<float> out) {
    for (size_t c = 0; c < columns.size(); ++c)
      read_column(columns[c], row, {0, cells},
                  out.subspan(c * static_cast<size_t>(cells * members),
                              static_cast<size_t>(cells * members)));
  };
  const ComputedStatistics computed = compute_statistics(
      window, {.variables = info.num_variables(), .values = cells * members}, read, 0, nullptr);
  KeptStatistics kept{computed.all, {}};
  for (size_t k = 0; k < deltas_s.size(); ++k)
    kept.tendencies[deltas_s[k]] = computed.tendencies[k];
  return kept;
}

void NetcdfDataset::State::find_statistics() {
  DatasetOptions period;
  period.start = options.statistics_start;
  period.end = options.statistics_end;
  period.start_path = section + ".statistics_start";
  period.end_path = section + ".statistics_end";
  if (period.end.empty()) period.end = format_date(default_statistics_end(info.dates_s));
  const std::vector<int64_t> rows = select_rows(info.dates_s, info.frequency_s, period);
  std::set<int64_t> wanted{info.frequency_s};
  for (const int64_t hours : {1, 3, 6, 12, 24}) {
    if (hours * 3600 % info.frequency_s == 0) wanted.insert(hours * 3600);
  }
  const std::vector<int64_t> deltas_s(wanted.begin(), wanted.end());
  StatisticsWindow window{rows.front(), rows.back() + 1, info.missing_rows, {}};
  for (const int64_t delta_s : deltas_s)
    window.lags.push_back(delta_s / info.frequency_s);
  Json of{{"version", 1},
          {"files", Json::array()},
          {"variables", Json::object()},
          {"forcings", options.forcings},
          {"longitudes_from_zero", options.longitudes_from_zero},
          {"first", format_date(info.dates_s[static_cast<size_t>(window.first_row)])},
          {"last", format_date(info.dates_s[static_cast<size_t>(window.end_row - 1)])}};
  for (const CfFile& file : files)
    of["files"].push_back(identity_of(file.path));
  for (const Column& column : columns)
    of["variables"][column.name] =
        column.is_forcing ? Json() : Json(column.sources.front().field.variable.name);
  const fs::path folder = options.statistics_dir.empty()
                              ? fs::path(files.front().path).parent_path()
                              : fs::path(options.statistics_dir);
  const std::string name = concat("aifs-train-statistics-",
                                  sha256_hex(std::string_view(of.dump())).substr(0, 16), ".json");
  std::optional<KeptStatistics> kept =
      read_statistics_file(folder / name, of, info.num_variables());
  if (!kept) {
    log::info("computing statistics of '", info.name, "', ", window.end_row - window.first_row,
              " dates");
    kept = compute(window, deltas_s);
    try {
      write_statistics_file(folder / name, of, *kept);
    } catch (const Error& error) {
      notes.push_back(concat("statistics of '", info.name, "' cannot be kept: ", error.what()));
    }
  }
  info.statistics = kept->statistics;
  info.tendencies = kept->tendencies;
}

// Reduces what is known to the rows and columns of the options.
void NetcdfDataset::State::select(const DatasetOptions& given) {
  selected_rows = select_rows(info.dates_s, info.frequency_s, given);
  selected_columns = select_columns(info.variables, given);
  const auto pick = [](const auto& all, const std::vector<int64_t>& indices) {
    std::remove_cvref_t<decltype(all)> picked;
    for (const int64_t index : indices)
      picked.push_back(all[static_cast<size_t>(index)]);
    return picked;
  };
  const auto pick_statistics = [&](const Statistics& s) {
    return Statistics{pick(s.mean, selected_columns), pick(s.stdev, selected_columns),
                      pick(s.minimum, selected_columns), pick(s.maximum, selected_columns)};
  };
  std::vector<int64_t> missing;
  for (size_t i = 0; i < selected_rows.size(); ++i) {
    if (std::ranges::binary_search(info.missing_rows, selected_rows[i]))
      missing.push_back(static_cast<int64_t>(i));
  }
  info.missing_rows = std::move(missing);
  if (selected_rows.size() > 1) info.frequency_s *= selected_rows[1] - selected_rows[0];
  info.dates_s = pick(info.dates_s, selected_rows);
  info.variables = pick(info.variables, selected_columns);
  info.statistics = pick_statistics(info.statistics);
  for (auto& [delta_s, statistics] : info.tendencies)
    statistics = pick_statistics(statistics);
  std::erase_if(info.constant_fields, [&](const std::string& name) {
    return std::ranges::find(info.variables, name) == info.variables.end();
  });
}

void NetcdfDataset::State::read_column(const Column& column, int64_t row, NodeRange nodes,
                                       std::span<float> out) const {
  const auto begin = static_cast<size_t>(nodes.begin), count = static_cast<size_t>(nodes.size());
  if (column.is_forcing) {
    compute_forcing(column.name, all_dates_s[static_cast<size_t>(row)],
                    std::span(info.latitudes_deg).subspan(begin, count),
                    std::span(info.longitudes_deg).subspan(begin, count), out.first(count));
    for (size_t member = 1; member < static_cast<size_t>(info.ensemble_size); ++member)
      std::copy_n(out.begin(), count, out.begin() + static_cast<int64_t>(member * count));
    return;
  }
  const Column::Place place =
      column.places.empty() ? Column::Place{0, 0} : column.places[static_cast<size_t>(row)];
  const Source& source = column.sources[static_cast<size_t>(place.source)];
  const std::shared_ptr<const NetcdfFile> file = pool.open(files[source.file].path);
  const int64_t members = source.field.members;
  if (turn == 0) {
    read_cf_field(*file, grid(), source.field, place.time, nodes, out);
  } else {
    const int64_t width = grid().shape[1];
    const int64_t first = nodes.begin / width * width;
    const int64_t last = (nodes.end + width - 1) / width * width;
    std::vector<float> rows(static_cast<size_t>(members * (last - first)));
    read_cf_field(*file, grid(), source.field, place.time, {first, last}, rows);
    for (int64_t member = 0; member < members; ++member) {
      for (int64_t cell = nodes.begin; cell < nodes.end; ++cell) {
        const int64_t from = cell / width * width + (cell % width + turn) % width;
        out[static_cast<size_t>(member * nodes.size() + cell - nodes.begin)] =
            rows[static_cast<size_t>(member * (last - first) + from - first)];
      }
    }
  }
  for (int64_t member = members; member < info.ensemble_size; ++member)
    std::copy_n(out.begin(), count, out.begin() + member * nodes.size());
}

NetcdfDataset::NetcdfDataset(const DatasetOptions& options)
    : state_(std::make_unique<State>(options)) {}

NetcdfDataset::~NetcdfDataset() = default;

const DatasetInfo& NetcdfDataset::info() const {
  return state_->info;
}

std::vector<std::string> NetcdfDataset::warnings() const {
  return state_->notes;
}

void NetcdfDataset::read(int64_t row, NodeRange nodes, std::span<float> out) const {
  const State& state = *state_;
  const DatasetInfo& info = state.info;
  AIFS_CHECK(0 <= row && row < info.num_rows(), "row ", row, " of ", info.num_rows());
  AIFS_CHECK(0 <= nodes.begin && nodes.begin <= nodes.end && nodes.end <= info.num_nodes(),
             "cells [", nodes.begin, ", ", nodes.end, ") of ", info.num_nodes());
  const int64_t width = info.num_variables(), members = info.ensemble_size;
  AIFS_CHECK(static_cast<int64_t>(out.size()) == members * nodes.size() * width, "room for ",
             out.size(), " values");
  if (std::ranges::binary_search(info.missing_rows, row)) {
    throw DataError(concat("'", info.name, "': row ", row, " (",
                           format_date(info.dates_s[static_cast<size_t>(row)]),
                           ") is a missing date"));
  }
  std::vector<float> field(static_cast<size_t>(members * nodes.size()));
  for (int64_t c = 0; c < width; ++c) {
    const int64_t column = state.selected_columns[static_cast<size_t>(c)];
    state.read_column(state.columns[static_cast<size_t>(column)],
                      state.selected_rows[static_cast<size_t>(row)], nodes, field);
    for (size_t i = 0; i < field.size(); ++i)
      out[i * static_cast<size_t>(width) + static_cast<size_t>(c)] = field[i];
  }
}

std::vector<std::string> netcdf_files(const std::vector<std::string>& names,
                                      const std::string& path) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (name.find_first_of("*?[") == std::string::npos || path_exists(name)) {
      files.push_back(name);
      continue;
    }
    glob_t found{};
    const int status = ::glob(name.c_str(), 0, nullptr, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i)
      files.push_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (status != 0) throw ConfigError(path, concat("there is no file like '", name, "'"));
  }
  std::set<std::string> seen;
  std::erase_if(files, [&](const std::string& file) { return !seen.insert(file).second; });
  if (files.empty()) throw ConfigError(path, "names no files");
  return files;
}

}  // namespace aifs::data
