// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include "core/check.h"

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

}  // namespace

std::unique_ptr<RowReader> Dataset::open_row(int64_t row, NodeRange nodes) const {
  return std::make_unique<WholeRow>(*this, row, nodes);
}

}  // namespace aifs::data
