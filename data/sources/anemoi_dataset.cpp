// SPDX-License-Identifier: Apache-2.0
#include "data/sources/anemoi_dataset.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "core/check.h"
#include "core/file_io.h"
#include "core/file_kind.h"
#include "core/log.h"
#include "core/time.h"
#include "data/fields/selection.h"
#include "data/sources/absent_rows.h"
#include "data/sources/anemoi_metadata.h"
#include "data/sources/anemoi_row.h"
#include "data/zarr/zip_store.h"

namespace aifs::data {

namespace {

// Reduces what is known of the whole store to some rows and columns.
void apply_selection(const std::vector<int64_t>& rows, const std::vector<int64_t>& columns,
                     AnemoiMetadata& metadata) {
  keep_rows(rows, metadata.info);
  keep_columns(columns, metadata.info);
  std::vector<int64_t> stored_rows;
  for (const int64_t row : rows)
    stored_rows.push_back(metadata.stored_rows[static_cast<size_t>(row)]);
  metadata.stored_rows = std::move(stored_rows);
}

[[noreturn]] void refuse_file(const fs::path& path) {
  const std::string kind = describe_kind_of_file(path), name = path.string();
  std::string hint = "name the folder of a Zarr group, usually called *.zarr";
  if (kind == "a tar archive" || kind == "a gzip file") hint = concat("unpack it: tar -xf ", name);
  if (kind.find("netCDF") != std::string::npos)
    hint = concat("netCDF files are named so: \"dataset\": {\"netcdf\": [\"", name, "\"]}");
  if (kind == "a GRIB file") hint = "make an Anemoi dataset of it: anemoi-datasets create";
  throw DataError(concat("'", name, "' is ", kind.empty() ? "a file that cannot be read" : kind,
                         ", the folder of an Anemoi dataset was expected"),
                  hint);
}

std::string date_text(const DatasetInfo& info, int64_t row) {
  return concat("row ", row, " (", format_date(info.dates_s[static_cast<size_t>(row)]), ")");
}

}  // namespace

std::shared_ptr<const zarr::Store> open_store(const std::string& folder) {
  if (folder.find("://") != std::string::npos) {
    throw DataError(concat("'", folder, "' is no folder: datasets are read from disks only"),
                    "copy it: anemoi-datasets copy FROM TO");
  }
  std::string name = folder;
  while (name.size() > 1 && name.back() == '/')
    name.pop_back();
  const fs::path path = name;
  if (folder_exists(path)) return std::make_shared<zarr::DirectoryStore>(name);
  if (path_exists(path)) {
    if (describe_kind_of_file(path) == "a zip archive")
      return std::make_shared<zarr::ZipStore>(name);
    refuse_file(path);
  }
  std::vector<std::string> neighbours;
  std::error_code error;
  const fs::path beside = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator it(beside, error), end; !error && it != end; it.increment(error)) {
    const fs::path extension = it->path().extension();
    if (extension == ".zarr" || extension == ".zip") neighbours.push_back(it->path().filename());
  }
  throw DataError(concat("there is no folder or zip file '", name, "'", dangling_link_text(path)),
                  nearest_names(path.filename().string(), neighbours));
}

namespace {

void sort_by_source(std::vector<ColumnMap>& columns) {
  std::sort(columns.begin(), columns.end(),
            [](const ColumnMap& a, const ColumnMap& b) { return a.source < b.source; });
}

}  // namespace

struct AnemoiDataset::State {
  zarr::Group group;
  zarr::Array data;
  AnemoiMetadata metadata;  // of the selected part
  bool strict;
  std::vector<int64_t> stored_variables;  // (V) of each column
  std::vector<ColumnMap> columns;         // the same, ascending by stored variable
  mutable std::once_flag absent_once = {}, surprise_once = {};
  mutable std::optional<AbsentRows> absent_rows = {};  // see known_absent_rows()

  State(const std::shared_ptr<const zarr::Store>& store, const DatasetOptions& options)
      : group(open_anemoi_group(*store)),
        data(store, "data", static_cast<size_t>(options.cache_mib) << 20),
        metadata(read_anemoi_metadata(store, group, data, options.strict)),
        strict(options.strict) {
    const DatasetInfo& info = metadata.info;
    const std::vector<int64_t> rows = select_rows(info.dates_s, info.frequency_s, options);
    const std::vector<int64_t> kept = select_columns(info.variables, options);
    apply_selection(rows, kept, metadata);
    stored_variables = kept;
    for (size_t c = 0; c < kept.size(); ++c)
      columns.push_back({kept[c], static_cast<int64_t>(c)});
    sort_by_source(columns);
  }

  const zarr::ChunkLayout& layout() const { return data.meta().chunk; }

  const std::optional<AbsentRows>& known_absent_rows() const;
  void note_absent(int64_t row, std::span<const int64_t> chunk) const;
  bool was_there(const AbsentRows& known, std::span<const int64_t> chunk) const;
  zarr::Region region_of(int64_t row, NodeRange nodes) const;
  void check_request(int64_t row, NodeRange nodes) const;
  std::unique_ptr<RowReader> open(int64_t row, NodeRange nodes,
                                  std::vector<ColumnMap> wanted) const;
};

AnemoiDataset::AnemoiDataset(const DatasetOptions& options)
    : AnemoiDataset(open_store(options.dataset), options) {}

AnemoiDataset::AnemoiDataset(std::shared_ptr<const zarr::Store> store,
                             const DatasetOptions& options)
    : state_(std::make_unique<State>(store, options)) {}

AnemoiDataset::~AnemoiDataset() = default;

const DatasetInfo& AnemoiDataset::info() const {
  return state_->metadata.info;
}

nlohmann::ordered_json AnemoiDataset::attributes() const {
  return state_->group.attributes;
}

int64_t AnemoiDataset::stored_row(int64_t row) const {
  return state_->metadata.stored_rows[static_cast<size_t>(row)];
}

std::span<const ColumnMap> AnemoiDataset::columns() const {
  return state_->columns;
}

const zarr::Array& AnemoiDataset::data() const {
  return state_->data;
}

std::unique_ptr<RowReader> AnemoiDataset::open_row(int64_t row, NodeRange nodes) const {
  return state_->open(row, nodes, state_->columns);
}

std::unique_ptr<RowReader> AnemoiDataset::open_columns(int64_t row, NodeRange nodes,
                                                       std::span<const ColumnMap> columns) const {
  std::vector<ColumnMap> wanted;
  for (const ColumnMap& map : columns)
    wanted.push_back({state_->stored_variables[static_cast<size_t>(map.source)], map.column});
  sort_by_source(wanted);
  return state_->open(row, nodes, std::move(wanted));
}

void AnemoiDataset::read(int64_t row, NodeRange nodes, std::span<float> out) const {
  read_in_pieces(*this, row, nodes, out);
}

std::vector<std::string> AnemoiDataset::warnings() const {
  std::vector<int64_t> rows(static_cast<size_t>(info().num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return warnings_for(rows);
}

std::vector<std::string> AnemoiDataset::warnings_for(std::span<const int64_t> rows) const {
  const State& state = *state_;
  std::vector<std::string> all = state.metadata.warnings;
  const auto& known = state.known_absent_rows();
  std::vector<int64_t> absent;
  if (known) {
    std::set_intersection(known->rows.begin(), known->rows.end(), rows.begin(), rows.end(),
                          std::back_inserter(absent));
  }
  if (absent.empty()) return all;
  const zarr::ArrayMeta& meta = state.data.meta();
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw DataError(concat("'", info().name, "': ", absent.size(), " of ", info().num_rows(),
                           " dates have no chunk, the first of them ",
                           date_text(info(), absent.front()), ", ", why),
                    hint);
  };
  if (!meta.fill.defined) {
    refuse(concat("and the fill_value in '", meta.file, "' is null: nothing says what they hold"),
           "restore the chunks from a copy of the dataset, or list the dates in missing_dates");
  }
  if (state.strict) {
    refuse(
        "and are not among the missing_dates",
        concat("restore the chunks; without data.dataset.strict they are read as the fill_value ",
               meta.fill.text(meta.type)));
  }
  all.push_back(concat("'", info().name, "': ", describe_absent_rows(meta, info(), absent)));
  return all;
}

std::string AnemoiDataset::remark(int64_t row) const {
  const State& state = *state_;
  std::string text;
  if (state.metadata.stored_rows[static_cast<size_t>(row)] < 0) return text;
  zarr::ChunkScratch scratch;
  state.data.grid().for_each_part(
      state.region_of(row, {0, info().num_nodes()}), [&](const zarr::ChunkPart& part) {
        if (!text.empty() || state.data.decode_chunk(part.chunk, {}, scratch).items) return;
        text = concat(state.data.absent_text(part.chunk), " and reads as the fill_value ",
                      state.data.meta().fill.text(state.data.meta().type));
      });
  return text;
}

std::unique_ptr<RowReader> AnemoiDataset::State::open(int64_t row, NodeRange nodes,
                                                      std::vector<ColumnMap> wanted) const {
  check_request(row, nodes);
  return std::make_unique<AnemoiRow>(
      data, AnemoiRow::Request{.stored_row = metadata.stored_rows[static_cast<size_t>(row)],
                               .nodes = nodes,
                               .members = metadata.info.ensemble_size,
                               .columns = std::move(wanted),
                               .on_absent = [this, row](std::span<const int64_t> chunk) {
                                 note_absent(row, chunk);
                               }});
}

zarr::Region AnemoiDataset::State::region_of(int64_t row, NodeRange nodes) const {
  const int64_t stored_row = metadata.stored_rows[static_cast<size_t>(row)];
  return {{stored_row, columns.front().source, 0, nodes.begin},
          {stored_row + 1, columns.back().source + 1, metadata.info.ensemble_size, nodes.end}};
}

// Found out once, when somebody asks or an absent chunk is met: most datasets have none.
const std::optional<AbsentRows>& AnemoiDataset::State::known_absent_rows() const {
  std::call_once(absent_once, [&] {
    std::vector<int64_t> rows = metadata.stored_rows;
    for (const int64_t row : metadata.info.missing_rows)
      rows[static_cast<size_t>(row)] = -1;
    std::vector<int64_t> variables;
    for (const ColumnMap& map : columns)
      variables.push_back(map.source);
    absent_rows = find_absent_rows(data, rows, variables);
  });
  return absent_rows;
}

// Refuses an absent chunk, and one that has gone since the dataset was opened; says once that there
// is one of which warnings() could not know.
void AnemoiDataset::State::note_absent(int64_t row, std::span<const int64_t> chunk) const {
  const zarr::ArrayMeta& meta = data.meta();
  if (strict) {
    throw DataError(concat(data.absent_text(chunk), ", but ", date_text(metadata.info, row),
                           " is not among the missing_dates"),
                    concat("restore the file; without data.dataset.strict it is read as the "
                           "fill_value ",
                           meta.fill.text(meta.type)));
  }
  const auto& known = known_absent_rows();
  if (known && std::binary_search(known->rows.begin(), known->rows.end(), row)) return;
  if (known && was_there(*known, chunk)) {
    throw zarr::ReadError(
        concat(data.absent_text(chunk), ", but it was there when the dataset was opened (",
               date_text(metadata.info, row), ")"),
        "restore the file; what is missing from the start is read as the fill value");
  }
  std::call_once(surprise_once, [&] {
    log::warning(data.absent_text(chunk), " and reads as the fill_value ",
                 meta.fill.text(meta.type), " of '", meta.file, "', at ",
                 date_text(metadata.info, row), "; others like it are not named");
  });
}

// True if an absent chunk of a row that lacked nothing was there when the dataset was opened: its
// file is gone (a shard that is there may lack it) or, where not all files were listed, its folder.
bool AnemoiDataset::State::was_there(const AbsentRows& known,
                                     std::span<const int64_t> chunk) const {
  if (data.has_file(chunk)) return false;
  if (known.is_exact) return true;
  bool has_any = false;
  const int64_t in_one_file = data.meta().sharding ? data.meta().sharding->shape[0] : 1;
  const bool is_listed = data.list_chunks_below(
      data.meta().sharding ? chunk[0] * data.meta().chunk.shape[0] / in_one_file : chunk[0],
      [&](std::span<const int64_t>) { has_any = true; });
  return is_listed && !has_any;
}

void AnemoiDataset::State::check_request(int64_t row, NodeRange nodes) const {
  const DatasetInfo& info = metadata.info;
  AIFS_CHECK(0 <= row && row < info.num_rows(), "row ", row, " of ", info.num_rows());
  AIFS_CHECK(0 <= nodes.begin && nodes.begin <= nodes.end && nodes.end <= info.num_nodes(),
             "cells [", nodes.begin, ", ", nodes.end, ") of ", info.num_nodes());
  if (std::binary_search(info.missing_rows.begin(), info.missing_rows.end(), row)) {
    throw DataError(concat("'", info.name, "': ", date_text(info, row), " is a missing date"));
  }
}

}  // namespace aifs::data
