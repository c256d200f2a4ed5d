// SPDX-License-Identifier: Apache-2.0
// Takes the runs of one row and makes of them the fields that a network sees: NaN filled, remapped,
// normalised, one variable after the other.
#pragma once

#include <span>
#include <vector>

#include "data/data_source.h"
#include "data/fields/field_kernels.h"
#include "data/fields/field_sink.h"

namespace aifs::data {

// Describes what is done to each column of a source; made once, used for all rows.
class ColumnMaps {
 public:
  // `source` outlives this.
  explicit ColumnMaps(const SampleSource& source);

  struct Column {
    AffineMap map;
    bool is_filled = false;
    float fill = 0.0f;                // for NaN, before the rule
    const RemapRule* rule = nullptr;  // or none
  };
  const Column& operator[](int64_t column) const { return columns_[static_cast<size_t>(column)]; }
  // True if columns can be treated one by one: no NaN is filled with another variable, or with
  // what another member decides.
  bool are_independent() const { return independent_; }

 private:
  std::vector<Column> columns_;
  bool independent_ = true;
};

// Says where the fields of a row go.
struct RowPlace {
  int64_t row = 0;
  NodeRange nodes;
  std::span<float> fields;      // (E, V, n)
  std::span<uint8_t> nan_mask;  // (n, V), cleared; empty: not wanted
  bool streams = false;         // the fields are too many to stay in a cache
};

class RowAssembly : public FieldSink {
 public:
  // All outlive this.
  RowAssembly(const SampleSource& source, const ColumnMaps& maps, const RowPlace& place)
      : source_(source), maps_(maps), place_(place) {}

  void put(const FieldRun& run) override;

 private:
  void put_slowly(const FieldRun& run, const ColumnMaps::Column& column, float* out);

  const SampleSource& source_;
  const ColumnMaps& maps_;
  RowPlace place_;
};

// Reads, fills and normalises a whole row in one go, for sources whose columns depend on each
// other.
void read_whole_row(const SampleSource& source, const ColumnMaps& maps, const RowPlace& place,
                    ReadScratch& scratch);

}  // namespace aifs::data
