// SPDX-License-Identifier: Apache-2.0
#include "data/sources/state_dataset.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/file_io.h"
#include "core/join.h"
#include "core/time.h"
#include "data/fields/time_axis.h"
#include "data/fields/units.h"
#include "data/sources/computed_forcings.h"
#include "data/sources/grib_states.h"
#include "data/sources/netcdf_states.h"

namespace aifs::data {

std::unique_ptr<StateFile> open_state_file(const std::string& path, const std::string& option) {
  check_readable(path);
  std::string first(8, '\0');
  std::ifstream(path, std::ios::binary).read(first.data(), std::ssize(first));
  std::unique_ptr<StateFile> file;
  if (first.starts_with("GRIB")) {
    file = open_grib_states(path, option);
  } else if (first.starts_with("CDF") || first.substr(1, 3) == "HDF") {
    file = open_netcdf_states(path);
  } else {
    throw DataError(concat("'", path, "' is neither a netCDF nor a GRIB file"),
                    "datasets of Anemoi are named with --set data.dataset=PATH");
  }
  if (file->fields().empty())
    throw DataError(concat("'", path, "' has no fields on a grid of latitudes and longitudes"));
  return file;
}

StateDataset::StateDataset(DatasetPtr dataset, std::vector<std::unique_ptr<StateFile>> files,
                           const std::vector<int64_t>& needed)
    : dataset_(std::move(dataset)),
      files_(std::move(files)),
      is_needed_(dataset_->info().variables.size(), false),
      info_(dataset_->info()) {
  for (const int64_t column : needed)
    is_needed_[static_cast<size_t>(column)] = true;
  for (size_t number = 0; number < files_.size(); ++number)
    add_file(number);
  info_.name = files_.front()->path();
  if (files_.size() > 1) info_.name += concat(" and ", files_.size() - 1, " more");
  make_axis();
}

void StateDataset::add_file(size_t number) {
  const StateFile& file = *files_[number];
  std::set<size_t> grids;
  for (size_t f = 0; f < file.fields().size(); ++f) {
    const StateField& field = file.fields()[f];
    const int64_t column = info_.find_column(field.name);
    if (column < 0) continue;
    if (field.is_ambiguous)
      throw DataError(
          concat("'", file.path(), "': '", field.name, "'",
                 field.date_s ? concat(" of ", format_date(*field.date_s)) : "", " is there twice"),
          "leave the others out: grib_copy -w typeOfLevel=...");
    if (grids.insert(field.grid).second) check_grid(file, file.grids()[field.grid]);
    if (field.members != 1 && field.members != info_.ensemble_size)
      throw DataError(concat("'", file.path(), "': '", field.name, "' has ", field.members,
                             " members, the model takes ", info_.ensemble_size));
    check_units(file, field, column);
    Places& places = field.date_s ? states_[*field.date_s] : constants_;
    const auto [found, is_new] = places.try_emplace(field.name, Place{number, f});
    if (!is_new)
      throw DataError(concat(
          "'", field.name, "'", field.date_s ? concat(" of ", format_date(*field.date_s)) : "",
          " is in '", files_[found->second.file]->path(), "' and again in '", file.path(), "'"));
  }
}

void StateDataset::check_grid(const StateFile& file, const StateGrid& grid) const {
  constexpr double kSame_deg = 2e-3, kRadians = 0.017453292519943295;
  const auto fail = [&](const std::string& why) {
    throw DataError(
        concat("'", file.path(), "' is on another grid than '", dataset_->info().name, "': ", why),
        "states must be on the grid of the model, cells in its order");
  };
  if (grid.num_cells != info_.num_nodes())
    fail(concat(grid.num_cells, " cells, and ", info_.num_nodes()));
  if (grid.latitudes_deg.empty() || grid.longitudes_deg.empty()) return;  // GRIB may not say
  if (std::ssize(grid.latitudes_deg) != grid.num_cells ||
      std::ssize(grid.longitudes_deg) != grid.num_cells)
    fail(concat(grid.latitudes_deg.size(), " latitudes and ", grid.longitudes_deg.size(),
                " longitudes of ", grid.num_cells, " cells"));
  for (size_t i = 0; i < grid.latitudes_deg.size(); ++i) {
    const double latitude = info_.latitudes_deg[i], longitude = info_.longitudes_deg[i];
    const double apart = std::remainder(grid.longitudes_deg[i] - longitude, 360.0);
    if (std::abs(grid.latitudes_deg[i] - latitude) > kSame_deg ||
        std::abs(apart) * std::cos(latitude * kRadians) > kSame_deg)
      fail(concat("cell ", i, " is at ", grid.latitudes_deg[i], " N ", grid.longitudes_deg[i],
                  " E, and at ", latitude, " N ", longitude, " E"));
  }
}

void StateDataset::check_units(const StateFile& file, const StateField& field, int64_t column) {
  if (info_.kinds.empty() || field.units.empty()) return;
  const std::string& units = info_.kinds[static_cast<size_t>(column)].units;
  if (units.empty() || units == field.units) return;
  const std::optional<UnitMap> map = convert_units(field.units, units);
  const bool is_same = map && std::abs(map->a - 1.0) < 1e-12 && std::abs(map->b) < 1e-12;
  const bool is_known = map || (parse_unit(units) && parse_unit(field.units));
  if (is_same || !is_known) return;
  const std::string text =
      concat("'", field.name, "' of '", file.path(), "' is in '", field.units, "', of '",
             dataset_->info().name, "' in '", units, "': values are taken as they are");
  if (!contains(warnings_, text)) warnings_.push_back(text);
}

void StateDataset::make_axis() {
  const DatasetInfo& below = dataset_->info();
  std::set<int64_t> dates(below.dates_s.begin(), below.dates_s.end());
  for (const auto& [date_s, places] : states_)
    dates.insert(date_s);
  if (dates.empty()) return;
  int64_t step_s = 0;
  for (const int64_t date_s : dates)
    step_s = std::gcd(step_s, date_s - *dates.begin());
  if (step_s == 0) step_s = std::max<int64_t>(below.frequency_s, 1);
  constexpr int64_t kMostRows = 2'000'000;
  if ((*dates.rbegin() - *dates.begin()) / step_s >= kMostRows)
    throw DataError(concat("dates of '", info_.name, "' and of '", below.name,
                           "' have no time step in common"));
  info_.dates_s.clear(), info_.missing_rows.clear();
  info_.frequency_s = step_s;
  for (int64_t date_s = *dates.begin(); date_s <= *dates.rbegin(); date_s += step_s) {
    if (!is_whole(date_s) && find_row(below.dates_s, below.missing_rows, date_s) < 0)
      info_.missing_rows.push_back(std::ssize(info_.dates_s));
    info_.dates_s.push_back(date_s);
  }
}

bool StateDataset::is_constant(const std::string& name) const {
  return contains(dataset_->info().constant_fields, name);
}

const StateDataset::Place* StateDataset::find(int64_t date_s, const std::string& name) const {
  const Places& dated = states_.at(date_s);
  if (const auto found = dated.find(name); found != dated.end()) return &found->second;
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

bool StateDataset::is_whole(int64_t date_s) const {
  return states_.contains(date_s) && lacking(date_s).empty();
}

std::vector<std::string> StateDataset::lacking(int64_t date_s) const {
  std::vector<std::string> names;
  for (size_t column = 0; column < is_needed_.size(); ++column) {
    const std::string& name = info_.variables[column];
    if (is_needed_[column] && !find(date_s, name) && !is_computed_forcing(name) &&
        !is_constant(name))
      names.push_back(name);
  }
  return names;
}

std::vector<int64_t> StateDataset::file_dates() const {
  std::vector<int64_t> dates;
  for (const auto& [date_s, places] : states_)
    dates.push_back(date_s);
  return dates;
}

void StateDataset::require_state(int64_t date_s) const {
  if (!states_.contains(date_s)) {
    std::vector<std::string> dates;
    for (const int64_t date : file_dates())
      dates.push_back(format_date(date));
    throw DataError(concat("no file of states has variables of the model on ", format_date(date_s)),
                    dates.empty() ? "" : concat("there are ", join(dates)));
  }
  std::vector<std::string> names = lacking(date_s);
  if (names.empty()) return;
  const size_t count = names.size();
  constexpr size_t kMost = 8;
  names.resize(std::min(count, kMost));
  throw DataError(concat("the state of ", format_date(date_s), " lacks '", join(names, "', '"), "'",
                         count > kMost ? concat(" and ", count - kMost, " more") : ""),
                  "name all files of the state: --states A,B");
}

int64_t StateDataset::row_below(int64_t row) const {
  const int64_t date_s = info_.dates_s[static_cast<size_t>(row)];
  const DatasetInfo& below = dataset_->info();
  return find_row(below.dates_s, below.missing_rows, date_s);
}

void StateDataset::read_column(int64_t date_s, int64_t column, NodeRange nodes,
                               std::span<float> out) const {
  const auto first = static_cast<size_t>(nodes.begin), count = static_cast<size_t>(nodes.size());
  const auto members = static_cast<size_t>(info_.ensemble_size);
  const std::string& name = info_.variables[static_cast<size_t>(column)];
  std::vector<float> field;  // of one member, or of all
  if (const Place* place = find(date_s, name)) {
    const StateFile& file = *files_[place->file];
    const auto of_file = static_cast<size_t>(file.fields()[place->field].members);
    const auto cells = static_cast<size_t>(info_.num_nodes());
    std::vector<float> all(of_file * cells);
    file.read(place->field, all);
    for (size_t m = 0; m < of_file; ++m)
      field.insert(field.end(), all.begin() + static_cast<int64_t>(m * cells + first),
                   all.begin() + static_cast<int64_t>(m * cells + first + count));
  } else if (is_computed_forcing(name)) {
    field.resize(count);
    compute_forcing(name, date_s, std::span(info_.latitudes_deg).subspan(first, count),
                    std::span(info_.longitudes_deg).subspan(first, count), field);
  } else if (is_constant(name)) {
    const DatasetInfo& below = dataset_->info();
    int64_t row = 0;
    while (std::ranges::binary_search(below.missing_rows, row))
      ++row;
    field.resize(members * count);
    ReadScratch scratch;
    read_fields(*dataset_, row, nodes, std::span(&column, 1), scratch, field.data());
  } else {
    const auto mean = static_cast<float>(info_.statistics.mean[static_cast<size_t>(column)]);
    field.assign(count, std::isfinite(mean) ? mean : 0.0f);
  }
  for (size_t e = 0; e < members; ++e)
    std::copy_n(field.begin() + (field.size() == count ? 0 : static_cast<int64_t>(e * count)),
                count, out.begin() + static_cast<int64_t>(e * count));
}

// A whole state: each variable is a piece.
class StateDataset::WholeState : public RowReader {
 public:
  WholeState(const StateDataset& states, int64_t date_s, NodeRange nodes,
             std::vector<ColumnMap> columns)
      : states_(states), date_s_(date_s), nodes_(nodes), columns_(std::move(columns)) {}

  size_t num_pieces() const override { return columns_.size(); }
  void read_piece(size_t piece, FieldSink& sink, ReadScratch& /*scratch*/) override {
    const int64_t members = states_.info_.ensemble_size;
    std::vector<float> field(static_cast<size_t>(members * nodes_.size()));
    states_.read_column(date_s_, columns_[piece].source, nodes_, field);
    for (int64_t e = 0; e < members; ++e)
      sink.put({.column = columns_[piece].column,
                .member = e,
                .first_cell = nodes_.begin,
                .count = nodes_.size(),
                .values = field.data() + e * nodes_.size()});
  }

 private:
  const StateDataset& states_;
  int64_t date_s_;
  NodeRange nodes_;
  std::vector<ColumnMap> columns_;
};

void StateDataset::read(int64_t row, NodeRange nodes, std::span<float> out) const {
  if (!is_whole(info_.dates_s[static_cast<size_t>(row)]))
    return dataset_->read(row_below(row), nodes, out);
  read_in_pieces(*this, row, nodes, out);
}

std::unique_ptr<RowReader> StateDataset::open_row(int64_t row, NodeRange nodes) const {
  std::vector<ColumnMap> all;
  for (int64_t column = 0; column < info_.num_variables(); ++column)
    all.push_back({column, column});
  const int64_t date_s = info_.dates_s[static_cast<size_t>(row)];
  if (!is_whole(date_s)) return dataset_->open_row(row_below(row), nodes);
  return std::make_unique<WholeState>(*this, date_s, nodes, std::move(all));
}

std::unique_ptr<RowReader> StateDataset::open_columns(int64_t row, NodeRange nodes,
                                                      std::span<const ColumnMap> columns) const {
  const int64_t date_s = info_.dates_s[static_cast<size_t>(row)];
  if (!is_whole(date_s)) return dataset_->open_columns(row_below(row), nodes, columns);
  return std::make_unique<WholeState>(*this, date_s, nodes,
                                      std::vector<ColumnMap>(columns.begin(), columns.end()));
}

}  // namespace aifs::data
