// SPDX-License-Identifier: Apache-2.0
#include "data/combine/computed_dataset.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/combine/combined_dataset.h"

namespace aifs::data {

namespace {

// Fields (E, columns, n), one after the other.
using Fields = std::vector<float>;
using Compute = std::function<void(std::span<const int64_t> columns, ReadScratch&, Fields&)>;

// A row in one piece that is computed when it is read.
class ComputedRow : public RowReader {
 public:
  ComputedRow(std::span<const ColumnMap> columns, int64_t members, NodeRange nodes, Compute compute)
      : columns_(columns.begin(), columns.end()),
        members_(members),
        nodes_(nodes),
        compute_(std::move(compute)) {}
  size_t num_pieces() const override { return 1; }

  void read_piece(size_t /*piece*/, FieldSink& sink, ReadScratch& scratch) override {
    std::vector<int64_t> sources;
    for (const ColumnMap& map : columns_)
      sources.push_back(map.source);
    Fields fields;
    compute_(sources, scratch, fields);
    const float* values = fields.data();
    for (int64_t e = 0; e < members_; ++e) {
      for (const ColumnMap& map : columns_) {
        sink.put({.column = map.column,
                  .member = e,
                  .first_cell = nodes_.begin,
                  .count = nodes_.size(),
                  .values = values});
        values += nodes_.size();
      }
    }
  }

 private:
  std::vector<ColumnMap> columns_;
  int64_t members_;
  NodeRange nodes_;
  Compute compute_;
};

// Describes what the two kinds have in common.
class ComputedDataset : public Dataset {
 public:
  ComputedDataset(DatasetPtr source, DatasetInfo info)
      : source_(std::move(source)), info_(std::move(info)) {}
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, NodeRange nodes, std::span<float> out) const override {
    read_in_pieces(*this, row, nodes, out);
  }
  std::unique_ptr<RowReader> open_row(int64_t row, NodeRange nodes) const override {
    std::vector<ColumnMap> all;
    for (int64_t c = 0; c < info_.num_variables(); ++c)
      all.push_back({c, c});
    return open_columns(row, nodes, all);
  }
  nlohmann::ordered_json attributes() const override { return source_->attributes(); }
  std::vector<std::string> warnings() const override { return source_->warnings(); }

 protected:
  const Dataset& source() const { return *source_; }
  size_t num_values(std::span<const int64_t> columns, int64_t cells) const {
    return static_cast<size_t>(info_.ensemble_size * cells) * columns.size();
  }

 private:
  DatasetPtr source_;
  DatasetInfo info_;
};

class RowMixDataset : public ComputedDataset {
 public:
  RowMixDataset(DatasetPtr source, DatasetInfo info, std::vector<RowMix> mixes)
      : ComputedDataset(std::move(source), std::move(info)), mixes_(std::move(mixes)) {}

  std::unique_ptr<RowReader> open_columns(int64_t row, NodeRange nodes,
                                          std::span<const ColumnMap> columns) const override {
    check_row(info(), row, nodes);
    const RowMix& mix = mixes_[static_cast<size_t>(row)];
    if (mix.kind == RowMix::Kind::kAlone) {
      return source().open_columns(mix.rows.front(), nodes, columns);
    }
    return std::make_unique<ComputedRow>(
        columns, info().ensemble_size, nodes,
        [this, &mix, nodes](std::span<const int64_t> wanted, ReadScratch& scratch, Fields& out) {
          out.resize(num_values(wanted, nodes.size()));
          if (mix.kind == RowMix::Kind::kBlend) {
            blend(mix, nodes, wanted, scratch, out);
          } else {
            average(mix, nodes, wanted, scratch, out);
          }
        });
  }

  std::vector<std::string> warnings_for(std::span<const int64_t> rows) const override {
    std::vector<int64_t> used;
    for (const int64_t row : rows) {
      const RowMix& mix = mixes_[static_cast<size_t>(row)];
      used.insert(used.end(), mix.rows.begin(), mix.rows.end());
    }
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return source().warnings_for(used);
  }

 private:
  void blend(const RowMix& mix, NodeRange nodes, std::span<const int64_t> columns,
             ReadScratch& scratch, Fields& out) const {
    Fields second(out.size());
    read_fields(source(), mix.rows[0], nodes, columns, scratch, out.data());
    read_fields(source(), mix.rows[1], nodes, columns, scratch, second.data());
    const auto alpha = static_cast<float>(mix.alpha);
    const auto rest = static_cast<float>(1.0 - mix.alpha);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = mix.in_double ? static_cast<float>(double{out[i]} * (1.0 - mix.alpha) +
                                                  double{second[i]} * mix.alpha)
                             : out[i] * rest + second[i] * alpha;
    }
  }

  // As numpy's nanmean along the first axis: float32 sums, one row after the other.
  void average(const RowMix& mix, NodeRange nodes, std::span<const int64_t> columns,
               ReadScratch& scratch, Fields& out) const {
    Fields values(out.size());
    std::vector<int32_t> counts(out.size(), 0);
    std::fill(out.begin(), out.end(), 0.0f);
    for (const int64_t row : mix.rows) {
      read_fields(source(), row, nodes, columns, scratch, values.data());
      for (size_t i = 0; i < out.size(); ++i) {
        if (std::isnan(values[i])) continue;
        out[i] += values[i];
        ++counts[i];
      }
    }
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = counts[i] == 0 ? std::numeric_limits<float>::quiet_NaN()
                              : out[i] / static_cast<float>(counts[i]);
    }
  }

  std::vector<RowMix> mixes_;
};

class CellMixDataset : public ComputedDataset {
 public:
  CellMixDataset(DatasetPtr source, DatasetInfo info, CellMix mix)
      : ComputedDataset(std::move(source), std::move(info)), mix_(std::move(mix)) {}

  std::unique_ptr<RowReader> open_columns(int64_t row, NodeRange nodes,
                                          std::span<const ColumnMap> columns) const override {
    check_row(info(), row, nodes);
    return std::make_unique<ComputedRow>(
        columns, info().ensemble_size, nodes,
        [this, row, nodes](std::span<const int64_t> wanted, ReadScratch& scratch, Fields& out) {
          compute(row, nodes, wanted, scratch, out);
        });
  }
  std::vector<std::string> warnings_for(std::span<const int64_t> rows) const override {
    return source().warnings_for(rows);
  }
  std::string remark(int64_t row) const override { return source().remark(row); }

 private:
  void compute(int64_t row, NodeRange nodes, std::span<const int64_t> columns, ReadScratch& scratch,
               Fields& out) const {
    if (nodes.size() == 0) return;
    const auto k = static_cast<size_t>(mix_.num_neighbours);
    const int64_t* first = mix_.cells.data() + static_cast<size_t>(nodes.begin) * k;
    const size_t count = static_cast<size_t>(nodes.size()) * k;
    NodeRange needed{source().info().num_nodes(), 0};
    for (size_t i = 0; i < count; ++i) {
      if (first[i] < 0) continue;
      needed.begin = std::min(needed.begin, first[i]);
      needed.end = std::max(needed.end, first[i] + 1);
    }
    needed.begin = std::min(needed.begin, needed.end);
    Fields values(num_values(columns, needed.size()));
    if (needed.size() > 0) read_fields(source(), row, needed, columns, scratch, values.data());
    out.resize(num_values(columns, nodes.size()));
    const auto width = static_cast<size_t>(nodes.size());
    for (size_t field = 0; field < out.size() / width; ++field) {
      const float* from = values.data() + field * static_cast<size_t>(needed.size());
      for (size_t n = 0; n < width; ++n)
        out[field * width + n] =
            value_of(from - needed.begin, first + n * k, static_cast<size_t>(nodes.begin) + n, k);
    }
  }

  // `cells`: the k neighbours of cell n.
  float value_of(const float* from, const int64_t* cells, size_t n, size_t k) const {
    if (cells[0] < 0) return std::numeric_limits<float>::quiet_NaN();
    if (mix_.weights.empty()) return from[cells[0]];
    float sum = 0.0f;
    for (size_t i = 0; i < k; ++i)
      sum += from[cells[i]] * mix_.weights[n * k + i];
    return sum;
  }

  CellMix mix_;
};

}  // namespace

DatasetPtr mix_rows(DatasetPtr source, DatasetInfo info, std::vector<RowMix> mixes) {
  return std::make_shared<RowMixDataset>(std::move(source), std::move(info), std::move(mixes));
}

DatasetPtr mix_cells(DatasetPtr source, DatasetInfo info, CellMix mix) {
  return std::make_shared<CellMixDataset>(std::move(source), std::move(info), std::move(mix));
}

}  // namespace aifs::data
