// SPDX-License-Identifier: Apache-2.0
#include "data/fields/dataset.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "data/fields/field_kernels.h"

namespace aifs::data {

int64_t DatasetInfo::find_column(const std::string& variable) const {
  for (size_t v = 0; v < variables.size(); ++v) {
    if (variables[v] == variable) return static_cast<int64_t>(v);
  }
  return -1;
}

int64_t DatasetInfo::column(const std::string& variable) const {
  const int64_t found = find_column(variable);
  if (found < 0) {
    throw DataError(concat("'", name, "' has no variable '", variable, "'"),
                    nearest_names(variable, variables));
  }
  return found;
}

namespace {

template <class T>
std::vector<T> pick(const std::vector<T>& values, std::span<const int64_t> indices) {
  std::vector<T> picked;
  picked.reserve(indices.size());
  for (const int64_t index : indices)
    picked.push_back(values[static_cast<size_t>(index)]);
  return picked;
}

}  // namespace

void keep_rows(std::span<const int64_t> rows, DatasetInfo& info) {
  const std::vector<int64_t> all_missing = std::move(info.missing_rows);
  info.missing_rows.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::binary_search(all_missing.begin(), all_missing.end(), rows[i]))
      info.missing_rows.push_back(static_cast<int64_t>(i));
  }
  if (rows.size() > 1) info.frequency_s *= rows[1] - rows[0];
  info.dates_s = pick(info.dates_s, rows);
}

Statistics pick_columns(const Statistics& all, std::span<const int64_t> columns) {
  return {pick(all.mean, columns), pick(all.stdev, columns), pick(all.minimum, columns),
          pick(all.maximum, columns)};
}

void keep_columns(std::span<const int64_t> columns, DatasetInfo& info) {
  info.variables = pick(info.variables, columns);
  info.statistics = pick_columns(info.statistics, columns);
  for (auto& [difference_s, statistics] : info.tendencies)
    statistics = pick_columns(statistics, columns);
  if (!info.kinds.empty()) info.kinds = pick(info.kinds, columns);
  const std::vector<std::string> all_constant = std::move(info.constant_fields);
  info.constant_fields.clear();
  for (const std::string& name : info.variables) {
    if (std::find(all_constant.begin(), all_constant.end(), name) != all_constant.end())
      info.constant_fields.push_back(name);
  }
}

namespace {

// A row in one piece.
class WholeRow : public RowReader {
 public:
  WholeRow(const Dataset& dataset, int64_t row, NodeRange nodes)
      : dataset_(dataset), row_(row), nodes_(nodes) {}
  size_t num_pieces() const override { return 1; }

  void read_piece(size_t /*piece*/, FieldSink& sink, ReadScratch& scratch) override {
    const DatasetInfo& info = dataset_.info();
    const int64_t width = info.num_variables();
    const int64_t count = info.ensemble_size * nodes_.size() * width;
    scratch.floats.resize(static_cast<size_t>(count) * sizeof(float));
    auto* values = static_cast<float*>(static_cast<void*>(scratch.floats.data()));
    dataset_.read(row_, nodes_, {values, static_cast<size_t>(count)});
    for (int64_t e = 0; e < info.ensemble_size; ++e) {
      for (int64_t c = 0; c < width; ++c) {
        sink.put({.column = c,
                  .member = e,
                  .first_cell = nodes_.begin,
                  .count = nodes_.size(),
                  .values = values + e * nodes_.size() * width + c,
                  .stride = width});
      }
    }
  }

 private:
  const Dataset& dataset_;
  int64_t row_;
  NodeRange nodes_;
};

// Lets through what is wanted of a row that is read as a whole.
class FilteredRow : public RowReader {
 public:
  FilteredRow(std::unique_ptr<RowReader> row, std::span<const ColumnMap> columns, int64_t width)
      : row_(std::move(row)), column_of_(static_cast<size_t>(width), -1) {
    for (const ColumnMap& map : columns)
      column_of_[static_cast<size_t>(map.source)] = map.column;
  }
  size_t num_pieces() const override { return row_->num_pieces(); }
  void read_piece(size_t piece, FieldSink& sink, ReadScratch& scratch) override {
    Filter filter(column_of_, sink);
    row_->read_piece(piece, filter, scratch);
  }

 private:
  class Filter : public FieldSink {
   public:
    Filter(const std::vector<int64_t>& column_of, FieldSink& sink)
        : column_of_(column_of), sink_(sink) {}
    void put(const FieldRun& run) override {
      const int64_t column = column_of_[static_cast<size_t>(run.column)];
      if (column < 0) return;
      FieldRun renamed = run;
      renamed.column = column;
      sink_.put(renamed);
    }

   private:
    const std::vector<int64_t>& column_of_;
    FieldSink& sink_;
  };

  std::unique_ptr<RowReader> row_;
  std::vector<int64_t> column_of_;  // -1: not wanted
};

// Puts runs where memory says: value of column c, member e and cell n at
// out[e * member_stride + c * column_stride + (n - first_cell) * cell_stride].
class MemorySink : public FieldSink {
 public:
  struct Layout {
    int64_t first_cell = 0, member_stride = 0, column_stride = 0, cell_stride = 1;
  };
  MemorySink(float* out, const Layout& layout) : out_(out), layout_(layout) {}

  void put(const FieldRun& run) override {
    const float* values = run.values;
    if (!values) {
      joined_.resize(static_cast<size_t>(run.count));
      join_planes(run.planes, run.plane_bytes, run.count, joined_.data());
      values = joined_.data();
    }
    const int64_t stride = run.values ? run.stride : 1;
    float* to = out_ + run.member * layout_.member_stride + run.column * layout_.column_stride +
                (run.first_cell - layout_.first_cell) * layout_.cell_stride;
    for (int64_t i = 0; i < run.count; ++i)
      to[i * layout_.cell_stride] = values[i * stride];
  }

 private:
  float* out_;
  Layout layout_;
  std::vector<float> joined_;
};

}  // namespace

std::unique_ptr<RowReader> Dataset::open_row(int64_t row, NodeRange nodes) const {
  return std::make_unique<WholeRow>(*this, row, nodes);
}

std::unique_ptr<RowReader> Dataset::open_columns(int64_t row, NodeRange nodes,
                                                 std::span<const ColumnMap> columns) const {
  return std::make_unique<FilteredRow>(open_row(row, nodes), columns, info().num_variables());
}

nlohmann::ordered_json Dataset::attributes() const {
  return nlohmann::ordered_json::object();
}

void read_in_pieces(const Dataset& dataset, int64_t row, NodeRange nodes, std::span<float> out) {
  const DatasetInfo& info = dataset.info();
  const int64_t width = info.num_variables();
  const int64_t expected = info.ensemble_size * nodes.size() * width;
  AIFS_CHECK(out.size() == static_cast<size_t>(expected), "room for ", out.size(), " values of ",
             expected);
  const std::unique_ptr<RowReader> reader = dataset.open_row(row, nodes);
  MemorySink sink(out.data(), {.first_cell = nodes.begin,
                               .member_stride = nodes.size() * width,
                               .column_stride = 1,
                               .cell_stride = width});
  ReadScratch scratch;
  for (size_t piece = 0; piece < reader->num_pieces(); ++piece)
    reader->read_piece(piece, sink, scratch);
}

void read_fields(const Dataset& dataset, int64_t row, NodeRange nodes,
                 std::span<const int64_t> columns, ReadScratch& scratch, float* out) {
  std::vector<ColumnMap> maps;
  for (size_t c = 0; c < columns.size(); ++c)
    maps.push_back({columns[c], static_cast<int64_t>(c)});
  const auto width = static_cast<int64_t>(columns.size());
  const std::unique_ptr<RowReader> reader = dataset.open_columns(row, nodes, maps);
  MemorySink sink(out, {.first_cell = nodes.begin,
                        .member_stride = nodes.size() * width,
                        .column_stride = nodes.size()});
  for (size_t piece = 0; piece < reader->num_pieces(); ++piece)
    reader->read_piece(piece, sink, scratch);
}

}  // namespace aifs::data
