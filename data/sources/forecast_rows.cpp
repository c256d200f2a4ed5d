// SPDX-License-Identifier: Apache-2.0
#include "data/sources/forecast_rows.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "data/fields/time_axis.h"
#include "data/sources/computed_forcings.h"

namespace aifs::data {

ForecastRows::ForecastRows(DatasetPtr states, ForecastRowsOptions options)
    : states_(std::move(states)), options_(std::move(options)), info_(states_->info()) {
  const auto contains = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const int64_t column : options_.needed) {
    const std::string& name = info_.variables[static_cast<size_t>(column)];
    if (is_computed_forcing(name)) {
      computed_.push_back(column);
    } else if (contains(info_.constant_fields, name) || contains(options_.constant, name)) {
      constant_.push_back(column);
    } else {
      read_.push_back(column);
      read_names_.push_back(name);
    }
  }
  for (int64_t column = 0; column < info_.num_variables(); ++column)
    if (std::count(options_.needed.begin(), options_.needed.end(), column) == 0)
      unused_.push_back(column);
  require_states();
  require_times_to_come();
  info_.dates_s.clear();
  for (int64_t i = 0; i < options_.num_states + options_.num_times; ++i)
    info_.dates_s.push_back(options_.start_s + (i - options_.num_states + 1) * options_.timestep_s);
  info_.frequency_s = options_.timestep_s;
  info_.missing_rows.clear();
}

int64_t ForecastRows::row_of(int64_t date_s) const {
  return find_row(states_->info().dates_s, states_->info().missing_rows, date_s);
}

namespace {

std::string axis_of(const DatasetInfo& info) {
  if (info.dates_s.empty()) return "it has no dates";
  return concat("it has ", info.num_rows(), " dates, ", format_date(info.dates_s.front()), " to ",
                format_date(info.dates_s.back()), " every ", format_duration(info.frequency_s));
}

}  // namespace

void ForecastRows::require_states() const {
  for (int64_t i = 0; i < options_.num_states; ++i) {
    const int64_t date = options_.start_s - i * options_.timestep_s;
    if (row_of(date) >= 0) continue;
    const DatasetInfo& info = states_->info();
    const bool missing = find_row(info.dates_s, {}, date) >= 0;
    throw DataError(
        concat("a forecast from ", format_date(options_.start_s), " needs the state of ",
               format_date(date), ", which '", info.name,
               missing ? "' lists as missing" : "' has not: ", missing ? "" : axis_of(info)),
        concat("a forecast needs ", options_.num_states, " states, ",
               format_duration(options_.timestep_s), " apart"));
  }
}

void ForecastRows::require_times_to_come() const {
  if (read_.empty()) return;
  for (int64_t i = 1; i <= options_.num_times; ++i) {
    const int64_t date = options_.start_s + i * options_.timestep_s;
    if (row_of(date) >= 0) continue;
    std::string names;
    for (size_t k = 0; k < std::min<size_t>(read_names_.size(), 5); ++k)
      names += concat(k ? ", '" : "'", read_names_[k], "'");
    if (read_names_.size() > 5) names += concat(" and ", read_names_.size() - 5, " more");
    throw DataError(concat("a forecast from ", format_date(options_.start_s), " needs ", names,
                           " at ", format_date(date), ", and '", states_->info().name,
                           "' has no values there: ", axis_of(states_->info())),
                    "they are neither computed from place and date nor known to be constant: "
                    "shorten the lead time, give a dataset that goes on, or name forcings that are "
                    "the same at all dates with --constant");
  }
}

std::shared_ptr<const std::vector<float>> ForecastRows::constant_fields(NodeRange nodes) const {
  const std::lock_guard lock(mutex_);
  if (!kept_ || kept_nodes_.begin != nodes.begin || kept_nodes_.end != nodes.end) {
    std::vector<float> fields(static_cast<size_t>(info_.ensemble_size * nodes.size()) *
                              constant_.size());
    ReadScratch scratch;
    read_fields(*states_, row_of(options_.start_s), nodes, constant_, scratch, fields.data());
    kept_ = std::make_shared<const std::vector<float>>(std::move(fields));
    kept_nodes_ = nodes;
  }
  return kept_;
}

// Each computed variable is a piece, then come those of the dataset, then everything else.
class ForecastRows::TimeToCome : public RowReader {
 public:
  TimeToCome(const ForecastRows& rows, int64_t date_s, NodeRange nodes)
      : rows_(rows), date_s_(date_s), nodes_(nodes) {
    if (rows.read_.empty()) return;
    std::vector<ColumnMap> columns;
    for (const int64_t column : rows.read_)
      columns.push_back({column, column});
    read_ = rows.states_->open_columns(rows.row_of(date_s), nodes, columns);
  }

  size_t num_pieces() const override {
    return rows_.computed_.size() + (read_ ? read_->num_pieces() : 0) + 1;
  }

  void read_piece(size_t piece, FieldSink& sink, ReadScratch& scratch) override {
    const size_t computed = rows_.computed_.size();
    if (piece < computed) return compute(rows_.computed_[piece], sink);
    piece -= computed;
    if (read_ && piece < read_->num_pieces()) return read_->read_piece(piece, sink, scratch);
    give_constant(sink);
    for (const int64_t column : rows_.unused_) {
      const auto mean =
          static_cast<float>(rows_.info_.statistics.mean[static_cast<size_t>(column)]);
      const float value = std::isfinite(mean) ? mean : 0.0f;
      give(column, &value, {.stride = 0}, sink);
    }
  }

 private:
  // How a field lies in memory: from one cell to the next, and from one member to the next.
  struct Strides {
    int64_t stride = 1, member_stride = 0;
  };

  void give(int64_t column, const float* values, const Strides& strides, FieldSink& sink) const {
    for (int64_t e = 0; e < rows_.info_.ensemble_size; ++e) {
      sink.put({.column = column,
                .member = e,
                .first_cell = nodes_.begin,
                .count = nodes_.size(),
                .values = values + e * strides.member_stride,
                .stride = strides.stride});
    }
  }

  void compute(int64_t column, FieldSink& sink) const {
    const auto first = static_cast<size_t>(nodes_.begin), n = static_cast<size_t>(nodes_.size());
    const DatasetInfo& info = rows_.info_;
    std::vector<float> field(n);
    compute_forcing(info.variables[static_cast<size_t>(column)], date_s_,
                    std::span(info.latitudes_deg).subspan(first, n),
                    std::span(info.longitudes_deg).subspan(first, n), field);
    give(column, field.data(), {}, sink);
  }

  void give_constant(FieldSink& sink) const {
    if (rows_.constant_.empty()) return;
    const auto fields = rows_.constant_fields(nodes_);
    const auto num_columns = static_cast<int64_t>(rows_.constant_.size());
    for (int64_t k = 0; k < num_columns; ++k) {
      give(rows_.constant_[static_cast<size_t>(k)], fields->data() + k * nodes_.size(),
           {.member_stride = num_columns * nodes_.size()}, sink);
    }
  }

  const ForecastRows& rows_;
  int64_t date_s_;
  NodeRange nodes_;
  std::unique_ptr<RowReader> read_;  // of the variables that the dataset gives
};

std::unique_ptr<RowReader> ForecastRows::open_row(int64_t row, NodeRange nodes) const {
  const int64_t date = info_.dates_s[static_cast<size_t>(row)];
  if (is_state(row)) return states_->open_row(row_of(date), nodes);
  return std::make_unique<TimeToCome>(*this, date, nodes);
}

void ForecastRows::read(int64_t row, NodeRange nodes, std::span<float> out) const {
  if (is_state(row))
    return states_->read(row_of(info_.dates_s[static_cast<size_t>(row)]), nodes, out);
  read_in_pieces(*this, row, nodes, out);
}

}  // namespace aifs::data
