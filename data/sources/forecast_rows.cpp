// SPDX-License-Identifier: Apache-2.0
#include "data/sources/forecast_rows.h"

#include <algorithm>

#include "core/check.h"
#include "core/time.h"
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
    } else if (!contains(info_.constant_fields, name) && !contains(options_.constant, name)) {
      read_.push_back(column);
      read_names_.push_back(name);
    }
  }
  require_states();
  require_times_to_come();
  info_.dates_s.clear();
  for (int64_t i = 0; i < options_.num_states + options_.num_times; ++i)
    info_.dates_s.push_back(options_.start_s + (i - options_.num_states + 1) * options_.timestep_s);
  info_.frequency_s = options_.timestep_s;
  info_.missing_rows.clear();
}

int64_t ForecastRows::row_of(int64_t date_s) const {
  const DatasetInfo& info = states_->info();
  const auto at = std::lower_bound(info.dates_s.begin(), info.dates_s.end(), date_s);
  if (at == info.dates_s.end() || *at != date_s) return -1;
  const int64_t row = at - info.dates_s.begin();
  const bool missing = std::binary_search(info.missing_rows.begin(), info.missing_rows.end(), row);
  return missing ? -1 : row;
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
    const bool missing = std::binary_search(info.dates_s.begin(), info.dates_s.end(), date);
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

std::shared_ptr<const std::vector<float>> ForecastRows::newest_state(NodeRange nodes) const {
  const std::lock_guard lock(mutex_);
  if (!kept_ || kept_nodes_.begin != nodes.begin || kept_nodes_.end != nodes.end) {
    std::vector<float> state(
        static_cast<size_t>(info_.ensemble_size * nodes.size() * info_.num_variables()));
    read_in_pieces(*states_, row_of(options_.start_s), nodes, state);
    kept_ = std::make_shared<const std::vector<float>>(std::move(state));
    kept_nodes_ = nodes;
  }
  return kept_;
}

std::unique_ptr<RowReader> ForecastRows::open_row(int64_t row, NodeRange nodes) const {
  if (is_state(row))
    return states_->open_row(row_of(info_.dates_s[static_cast<size_t>(row)]), nodes);
  return Dataset::open_row(row, nodes);
}

void ForecastRows::read(int64_t row, NodeRange nodes, std::span<float> out) const {
  const int64_t date = info_.dates_s[static_cast<size_t>(row)];
  if (is_state(row)) return states_->read(row_of(date), nodes, out);
  const auto state = newest_state(nodes);
  std::copy(state->begin(), state->end(), out.begin());
  const auto width = static_cast<size_t>(info_.num_variables());
  const auto n = static_cast<size_t>(nodes.size());
  const auto members = static_cast<size_t>(info_.ensemble_size);
  // `field` is (E or 1, n).
  const auto put = [&](int64_t column, const float* field, bool of_members) {
    for (size_t e = 0; e < members; ++e)
      for (size_t i = 0; i < n; ++i)
        out[(e * n + i) * width + static_cast<size_t>(column)] =
            field[(of_members ? e * n : 0) + i];
  };
  const auto first = static_cast<size_t>(nodes.begin);
  const std::span latitudes = std::span(info_.latitudes_deg).subspan(first, n);
  const std::span longitudes = std::span(info_.longitudes_deg).subspan(first, n);
  std::vector<float> field(n);
  for (const int64_t column : computed_) {
    compute_forcing(info_.variables[static_cast<size_t>(column)], date, latitudes, longitudes,
                    field);
    put(column, field.data(), false);
  }
  if (read_.empty()) return;
  ReadScratch scratch;
  std::vector<float> fields(members * read_.size() * n);
  read_fields(*states_, row_of(date), nodes, read_, scratch, fields.data());
  std::vector<float> one(members * n);
  for (size_t k = 0; k < read_.size(); ++k) {
    for (size_t e = 0; e < members; ++e)
      std::copy_n(fields.begin() + static_cast<std::ptrdiff_t>((e * read_.size() + k) * n), n,
                  one.begin() + static_cast<std::ptrdiff_t>(e * n));
    put(read_[k], one.data(), true);
  }
}

}  // namespace aifs::data
