// SPDX-License-Identifier: Apache-2.0
#include "data/combine/combined_dataset.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/check.h"
#include "core/time.h"
#include "data/fields/field_kernels.h"

namespace aifs::data {

namespace {

using Part = CombinedDataset::Part;

bool is_identity(const UnitMap& map) {
  return map.a == 1.0 && map.b == 0.0;
}

int64_t num_cells(const Part& part) {
  return part.cells.empty() ? part.source->info().num_nodes()
                            : static_cast<int64_t>(part.cells.size());
}

// Room for items in a buffer.
template <class T>
T* items_of(zarr::Buffer& buffer, int64_t count) {
  buffer.resize(static_cast<size_t>(count) * sizeof(T));
  return static_cast<T*>(static_cast<void*>(buffer.data()));
}

// Returns such room, or what the buffer holds already where `present` is that.
template <class T>
T* items_of(zarr::Buffer& buffer, const T* present, int64_t count) {
  auto* own = static_cast<T*>(static_cast<void*>(buffer.data()));
  return present && present == own ? own : items_of<T>(buffer, count);
}

// A part of a row, opened.
struct OpenPart {
  const Part* part = nullptr;
  std::unique_ptr<RowReader> reader = {};
  std::vector<UnitMap> maps = {};  // by column of the runs; empty: none
  bool passes_through = false;     // runs are handed on as they are
};

// Brings the runs of a source to their places.
class PartSink : public FieldSink {
 public:
  PartSink(const OpenPart& open, FieldSink& sink, ReadScratch& scratch)
      : open_(open), part_(*open.part), sink_(sink), scratch_(scratch) {
    if (scratch.num_mapped == scratch.mapped.size()) scratch.mapped.emplace_back();
    buffer_ = &scratch.mapped[scratch.num_mapped++];
  }
  ~PartSink() override { --scratch_.num_mapped; }
  PartSink(const PartSink&) = delete;
  PartSink& operator=(const PartSink&) = delete;

  void put(const FieldRun& run) override {
    FieldRun out = run;
    if (!part_.members.empty()) {
      out.member = part_.members[static_cast<size_t>(run.member)];
      if (out.member < 0) return;
    }
    if (!part_.cells.empty() && !pick_cells(run, out)) return;
    if (part_.cells.empty()) out.first_cell += part_.first_cell;
    if (!open_.maps.empty()) {
      const UnitMap& map = open_.maps[static_cast<size_t>(out.column)];
      if (!is_identity(map)) apply(map, out);
    }
    sink_.put(out);
  }

 private:
  // Those cells of a run that are used; false: none.
  bool pick_cells(const FieldRun& run, FieldRun& out) {
    const std::vector<int64_t>& cells = part_.cells;
    const auto begin = std::lower_bound(cells.begin(), cells.end(), run.first_cell);
    const auto end = std::lower_bound(begin, cells.end(), run.first_cell + run.count);
    if (begin == end) return false;
    const int64_t skipped = *begin - run.first_cell;
    out.first_cell = part_.first_cell + (begin - cells.begin());
    out.count = end - begin;
    if (*(end - 1) - *begin + 1 == out.count) {  // they follow each other
      if (run.values) out.values = run.values + skipped * run.stride;
      if (run.doubles) out.doubles = run.doubles + skipped * run.stride;
      if (run.planes) out.planes = run.planes + skipped;
      return true;
    }
    auto* picked = items_of<float>(buffer_->floats, out.count);
    const float* const first_picked = picked;
    if (run.doubles) {
      auto* exact = items_of<double>(buffer_->doubles, out.count);
      out.doubles = exact;
      for (auto cell = begin; cell != end; ++cell)
        *exact++ = run.doubles[(*cell - run.first_cell) * run.stride];
    }
    if (run.values) {
      for (auto cell = begin; cell != end; ++cell)
        *picked++ = run.values[(*cell - run.first_cell) * run.stride];
    } else {
      for (auto cell = begin; cell != end; ++cell) {
        std::byte* bytes = static_cast<std::byte*>(static_cast<void*>(picked++));
        for (size_t b = 0; b < sizeof(float); ++b)
          bytes[b] = run.planes[b * run.plane_bytes + static_cast<size_t>(*cell - run.first_cell)];
      }
    }
    out.values = first_picked;
    out.stride = 1;
    out.planes = nullptr;
    return true;
  }

  void apply(const UnitMap& map, FieldRun& run) {
    // Picked values lie in the buffers already, and are mapped in place.
    float* values = items_of(buffer_->floats, run.values, run.count);
    const AffineMap rounded{static_cast<float>(map.a), static_cast<float>(map.b)};
    if (run.doubles) {
      double* exact = items_of(buffer_->doubles, run.doubles, run.count);
      for (int64_t i = 0; i < run.count; ++i) {
        exact[i] = run.doubles[i * run.stride] * map.a + map.b;
        values[i] = static_cast<float>(exact[i]);
      }
      run.doubles = exact;
    } else if (run.values) {
      map_floats(run.values, run.stride, run.count, rounded, values);
    } else {
      map_planes(run.planes, run.plane_bytes, run.count, rounded, false, values);
    }
    run.values = values;
    run.stride = 1;
    run.planes = nullptr;
  }

  const OpenPart& open_;
  const Part& part_;
  FieldSink& sink_;
  ReadScratch& scratch_;
  ReadScratch::Mapped* buffer_;
};

class CombinedRow : public RowReader {
 public:
  explicit CombinedRow(std::vector<OpenPart> parts) : parts_(std::move(parts)) {
    for (size_t p = 0; p < parts_.size(); ++p) {
      first_piece_.push_back(num_pieces_);
      num_pieces_ += parts_[p].reader->num_pieces();
    }
  }
  size_t num_pieces() const override { return num_pieces_; }

  void read_piece(size_t piece, FieldSink& sink, ReadScratch& scratch) override {
    const auto next = std::upper_bound(first_piece_.begin(), first_piece_.end(), piece);
    const auto p = static_cast<size_t>(next - first_piece_.begin() - 1);
    const OpenPart& open = parts_[p];
    piece -= first_piece_[p];
    if (open.passes_through) return open.reader->read_piece(piece, sink, scratch);
    PartSink mapped(open, sink, scratch);
    open.reader->read_piece(piece, mapped, scratch);
  }

 private:
  std::vector<OpenPart> parts_;
  std::vector<size_t> first_piece_;  // of each part
  size_t num_pieces_ = 0;
};

}  // namespace

void check_row(const DatasetInfo& info, int64_t row, NodeRange nodes) {
  AIFS_CHECK(0 <= row && row < info.num_rows(), "row ", row, " of ", info.num_rows());
  AIFS_CHECK(0 <= nodes.begin && nodes.begin <= nodes.end && nodes.end <= info.num_nodes(),
             "cells [", nodes.begin, ", ", nodes.end, ") of ", info.num_nodes());
  if (!std::binary_search(info.missing_rows.begin(), info.missing_rows.end(), row)) return;
  throw DataError(concat("'", info.name, "': row ", row, " (",
                         format_date(info.dates_s[static_cast<size_t>(row)]),
                         ") is a missing date"));
}

CombinedDataset::CombinedDataset(DatasetInfo info, std::vector<Part> parts)
    : info_(std::move(info)), parts_(std::move(parts)) {
  for (const Part& part : parts_) {
    const int64_t width = part.source->info().num_variables();
    std::vector<int64_t>& sources = sources_.emplace_back();
    sources.assign(static_cast<size_t>(info_.num_variables()), -1);
    for (int64_t s = 0; s < width; ++s) {
      const int64_t column = part.columns.empty() ? s : part.columns[static_cast<size_t>(s)];
      if (column >= 0) sources[static_cast<size_t>(column)] = s;
    }
  }
}

int64_t CombinedDataset::row_of(const Part& part, int64_t row) const {
  return part.rows.empty() ? row : part.rows[static_cast<size_t>(row)];
}

void CombinedDataset::read(int64_t row, NodeRange nodes, std::span<float> out) const {
  read_in_pieces(*this, row, nodes, out);
}

std::unique_ptr<RowReader> CombinedDataset::open_row(int64_t row, NodeRange nodes) const {
  std::vector<ColumnMap> all;
  for (int64_t c = 0; c < info_.num_variables(); ++c)
    all.push_back({c, c});
  return open_columns(row, nodes, all);
}

std::unique_ptr<RowReader> CombinedDataset::open_columns(int64_t row, NodeRange nodes,
                                                         std::span<const ColumnMap> columns) const {
  check_row(info_, row, nodes);
  std::vector<OpenPart> open;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    const int64_t source_row = row_of(part, row);
    const int64_t first = std::max<int64_t>(nodes.begin - part.first_cell, 0);
    const int64_t end = std::min(nodes.end - part.first_cell, num_cells(part));
    if (source_row < 0 || first >= end) continue;
    OpenPart opened{&part};
    std::vector<ColumnMap> wanted;
    for (const ColumnMap& map : columns) {
      const int64_t source = sources_[p][static_cast<size_t>(map.source)];
      if (source < 0) continue;
      wanted.push_back({source, map.column});
      if (part.maps.empty()) continue;
      const auto column = static_cast<size_t>(map.column);
      if (opened.maps.size() <= column) opened.maps.resize(column + 1);
      opened.maps[column] = part.maps[static_cast<size_t>(source)];
    }
    if (wanted.empty()) continue;
    NodeRange cells{first, end};
    if (!part.cells.empty()) {
      cells = {part.cells[static_cast<size_t>(first)],
               part.cells[static_cast<size_t>(end - 1)] + 1};
    }
    opened.reader = part.source->open_columns(source_row, cells, wanted);
    opened.passes_through = part.members.empty() && part.cells.empty() && part.first_cell == 0 &&
                            std::all_of(opened.maps.begin(), opened.maps.end(), is_identity);
    open.push_back(std::move(opened));
  }
  return std::make_unique<CombinedRow>(std::move(open));
}

std::vector<std::string> CombinedDataset::warnings() const {
  std::vector<int64_t> rows(static_cast<size_t>(info_.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return warnings_for(rows);
}

std::vector<std::string> CombinedDataset::warnings_for(std::span<const int64_t> rows) const {
  std::vector<std::string> all;
  for (const Part& part : parts_) {
    std::vector<int64_t> used;
    for (const int64_t row : rows) {
      if (const int64_t source_row = row_of(part, row); source_row >= 0) used.push_back(source_row);
    }
    std::sort(used.begin(), used.end());
    for (std::string& text : part.source->warnings_for(used)) {
      if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
    }
  }
  return all;
}

std::string CombinedDataset::remark(int64_t row) const {
  std::string all;
  for (const Part& part : parts_) {
    const int64_t source_row = row_of(part, row);
    const std::string text = source_row < 0 ? std::string() : part.source->remark(source_row);
    if (!text.empty()) all += (all.empty() ? "" : "; ") + text;
  }
  return all;
}

nlohmann::ordered_json CombinedDataset::attributes() const {
  using Values = nlohmann::ordered_json;
  constexpr const char* kVariables = "variables_metadata";
  Values all = parts_.front().source->attributes();
  Values described = Values::object();
  for (size_t c = 0; c < info_.variables.size(); ++c) {
    for (size_t p = 0; p < parts_.size(); ++p) {
      const int64_t source = sources_[p][c];
      if (source < 0) continue;
      const Dataset& dataset = *parts_[p].source;
      const Values theirs = dataset.attributes().value(kVariables, Values());
      const std::string& name = dataset.info().variables[static_cast<size_t>(source)];
      if (theirs.is_object() && theirs.contains(name)) described[info_.variables[c]] = theirs[name];
      break;
    }
  }
  if (all.contains(kVariables)) all[kVariables] = std::move(described);
  if (all.contains("field_shape")) all["field_shape"] = info_.field_shape;
  return all;
}

}  // namespace aifs::data
