// SPDX-License-Identifier: Apache-2.0
#include "data/tools/store_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "core/time.h"
#include "data/sources/anemoi_metadata.h"
#include "data/tools/position_values.h"
#include "data/tools/store_summary.h"
#include "data/zarr/array.h"
#include "data/zarr/convert.h"

namespace aifs::data {

namespace {

using zarr::Json;
using StorePtr = std::shared_ptr<const zarr::Store>;

// Describes what some values of a variable are like.
struct Tally {
  int64_t values = 0, nan = 0, infinite = 0, outliers = 0, wrong = 0;
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -std::numeric_limits<double>::infinity();

  void join(const Tally& other) {
    values += other.values;
    nan += other.nan;
    infinite += other.infinite;
    outliers += other.outliers;
    wrong += other.wrong;
    minimum = std::min(minimum, other.minimum);
    maximum = std::max(maximum, other.maximum);
  }
  Json json() const {
    const bool any = minimum <= maximum;
    return {{"values", values},
            {"nan", nan},
            {"infinite", infinite},
            {"outliers", outliers},
            {"wrong", wrong},
            {"minimum", any ? Json(minimum) : Json()},
            {"maximum", any ? Json(maximum) : Json()}};
  }
};

// Describes what is known of the fields; without it chunks are only decoded.
struct Expectation {
  DatasetInfo info;
  std::map<int64_t, int64_t> row_of_stored;  // stored row -> row
  std::vector<bool> allows_nan;              // by variable
  std::vector<double> low, high;             // by variable; NaN: no limit
  bool is_position = false;
};

class StoreCheck {
 public:
  StoreCheck(StorePtr store, const CheckOptions& options, ProgressSink* progress)
      : store_(std::move(store)), options_(options), progress_(progress) {}

  Json run() {
    const std::vector<std::string> names = array_names(*store_);
    learn_expectations();
    bool has_data = false;
    for (const std::string& name : names) {
      has_data = has_data || name == "data";
      check_array(name);
    }
    if (!has_data) add_fault(concat("'", store_->name(), "' has no array 'data'"));
    return report();
  }

 private:
  void add_fault(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(faults_, text) == faults_.end()) faults_.push_back(text);
  }
  // Runs `body`; what it throws is a fault.
  template <class Body>
  bool guarded(Body&& body) {
    try {
      body();
      return true;
    } catch (const DataError& error) {
      add_fault(error.what());
    } catch (const std::bad_alloc&) {
      add_fault(concat("'", store_->name(), "': not enough memory"));
    }
    return false;
  }

  void learn_expectations();
  void expect_nans(const zarr::Group& group);
  void expect_values(Expectation& e);
  void check_gaps(const zarr::Group& group, const std::vector<int64_t>& stored_rows,
                  const DatasetInfo& info);
  void check_array(const std::string& name);
  void check_chunk(const zarr::Array& array, std::span<const int64_t> chunk, bool is_data);
  void check_values(const zarr::Array& array, std::span<const int64_t> chunk,
                    const std::byte* items);
  Tally tally(std::span<const double> values, size_t variable, int64_t first_item) const;
  bool is_odd(const Tally& found, size_t variable) const {
    return found.infinite > 0 || found.outliers > 0 || found.wrong > 0 ||
           (found.nan > 0 && !expected_->allows_nan[variable]);
  }
  Json report() const;

  StorePtr store_;
  CheckOptions options_;
  ProgressSink* progress_;
  std::optional<Expectation> expected_;
  std::mutex mutex_;
  std::vector<std::string> faults_, absent_;
  std::vector<Tally> variables_;
  std::map<std::pair<int64_t, size_t>, Tally> findings_;  // by row and variable
  int64_t chunks_ = 0, bytes_ = 0;
};

void StoreCheck::expect_nans(const zarr::Group& group) {
  Expectation& e = *expected_;
  const Json allowed = group.attributes.value("allow_nans", Json());
  const Json listed = group.attributes.value("variables_with_nans", Json());
  const bool all = (allowed.is_null() && listed.is_null()) || (allowed.is_boolean() && allowed);
  const auto names = [](const Json& list, const std::string& name) {
    return list.is_array() && std::find(list.begin(), list.end(), Json(name)) != list.end();
  };
  for (const std::string& name : e.info.variables)
    e.allows_nan.push_back(all || names(allowed, name) || names(listed, name));
}

// Limits of the values, from statistics that can be.
void StoreCheck::expect_values(Expectation& e) {
  const Statistics& s = e.info.statistics;
  for (size_t v = 0; v < e.info.variables.size(); ++v) {
    const double range = s.maximum[v] - s.minimum[v];
    const bool has_limits = std::isfinite(range) && range >= 0.0;
    // Allows for rounding of what never varies.
    const double least = 1e-5 * std::max(std::abs(s.minimum[v]), std::abs(s.maximum[v]));
    const double room = std::max(options_.margin * range, least);
    e.low.push_back(has_limits ? s.minimum[v] - room : std::nan(""));
    e.high.push_back(has_limits ? s.maximum[v] + room : std::nan(""));
    const bool has_mean = s.mean[v] >= s.minimum[v] - least && s.mean[v] <= s.maximum[v] + least;
    const bool has_stdev =
        std::isfinite(s.stdev[v]) && (range > 0.0 ? s.stdev[v] > 0.0 : s.stdev[v] >= 0.0);
    if (has_limits && has_mean && has_stdev) continue;
    add_fault(concat("'", store_->name(), "': statistics of '", e.info.variables[v],
                     "' cannot be: mean ", s.mean[v], ", stdev ", s.stdev[v], ", minimum ",
                     s.minimum[v], ", maximum ", s.maximum[v]));
  }
}

// Dates between the first and the last without a row, which nothing declares missing.
void StoreCheck::check_gaps(const zarr::Group& group, const std::vector<int64_t>& stored_rows,
                            const DatasetInfo& info) {
  const Json declared = group.attributes.value("missing_dates", Json());
  for (size_t row = 0; row < stored_rows.size(); ++row) {
    const std::string date = format_date(info.dates_s[row]);
    const bool is_declared = declared.is_array() && std::find(declared.begin(), declared.end(),
                                                              Json(date)) != declared.end();
    if (stored_rows[row] < 0 && !is_declared)
      add_fault(concat("'", store_->name(), "': ", date,
                       " has no row and is not among the missing_dates"));
  }
}

void StoreCheck::learn_expectations() {
  guarded([&] {
    const zarr::Group group = open_anemoi_group(*store_);
    const zarr::Array data(store_, "data");
    AnemoiMetadata metadata = read_anemoi_metadata(store_, group, data);
    for (const std::string& warning : metadata.warnings)
      add_fault(warning);
    Expectation e{.info = std::move(metadata.info),
                  .row_of_stored = {},
                  .allows_nan = {},
                  .low = {},
                  .high = {}};
    for (size_t row = 0; row < metadata.stored_rows.size(); ++row)
      e.row_of_stored[metadata.stored_rows[row]] = static_cast<int64_t>(row);
    expect_values(e);
    check_gaps(group, metadata.stored_rows, e.info);
    const Json synthetic = group.attributes.value(kSyntheticAttribute, Json());
    e.is_position = synthetic == kPositionValues;
    expected_ = std::move(e);
    expect_nans(group);
    variables_.resize(expected_->info.variables.size());
  });
}

void StoreCheck::check_array(const std::string& name) {
  guarded([&] {
    const zarr::Array array(store_, name);
    std::vector<int64_t> counts;
    int64_t total = 1;
    for (size_t axis = 0; axis < array.meta().shape.size(); ++axis) {
      const int64_t length = array.meta().chunk.shape[axis];
      counts.push_back((array.meta().shape[axis] + length - 1) / length);
      total *= counts.back();
    }
    const bool is_data = name == "data";
    if (progress_ && is_data) progress_->start("check", total, "chunks");
    const int64_t threads = threads_for(options_.threads, 3 * array.meta().chunk_bytes());
    run_on_threads(total, threads, [&](int64_t item) {
      std::vector<int64_t> chunk(counts.size());
      for (size_t axis = counts.size(); axis-- > 0; item /= counts[axis])
        chunk[axis] = item % counts[axis];
      guarded([&] { check_chunk(array, chunk, is_data); });
      if (progress_ && is_data) progress_->add(1, array.meta().chunk_bytes());
    });
    if (progress_ && is_data) progress_->finish();
  });
}

void StoreCheck::check_chunk(const zarr::Array& array, std::span<const int64_t> chunk,
                             bool is_data) {
  thread_local zarr::ChunkScratch scratch;
  const auto is_declared = [&] {
    if (!is_data || !expected_) return false;
    const int64_t length = array.meta().chunk.shape[0];
    const int64_t end = std::min((chunk[0] + 1) * length, array.meta().shape[0]);
    for (int64_t stored = chunk[0] * length; stored < end; ++stored) {
      const auto row = expected_->row_of_stored.find(stored);
      if (row == expected_->row_of_stored.end() ||
          !std::ranges::binary_search(expected_->info.missing_rows, row->second))
        return false;
    }
    return true;
  };
  const std::byte* items = nullptr;
  try {
    items = array.decode_chunk(chunk, {}, scratch).items;
  } catch (const DataError&) {
    if (array.meta().fill.defined || !is_declared()) throw;
    return;  // a missing date, of which nobody asks what it holds
  }
  if (!items) {
    if (is_declared()) return;
    const std::lock_guard lock(mutex_);
    absent_.push_back(array.absent_text(chunk));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ++chunks_;
    bytes_ += array.meta().chunk_bytes();
  }
  if (is_data && expected_) check_values(array, chunk, items);
}

Tally StoreCheck::tally(std::span<const double> values, size_t variable, int64_t first_item) const {
  const double low = expected_->low[variable], high = expected_->high[variable];
  Tally found;
  found.values = static_cast<int64_t>(values.size());
  for (const double value : values) {
    if (std::isnan(value)) {
      ++found.nan;
    } else if (std::isinf(value)) {
      ++found.infinite;
    } else {
      if (value < low || value > high) ++found.outliers;
      found.minimum = std::min(found.minimum, value);
      found.maximum = std::max(found.maximum, value);
    }
  }
  if (!expected_->is_position) return found;
  for (size_t i = 0; i < values.size(); ++i) {
    const float expected = position_value(first_item + static_cast<int64_t>(i));
    if (values[i] != static_cast<double>(expected)) ++found.wrong;
  }
  return found;
}

void StoreCheck::check_values(const zarr::Array& array, std::span<const int64_t> chunk,
                              const std::byte* items) {
  const zarr::ArrayMeta& meta = array.meta();
  const std::vector<int64_t>& shape = meta.shape;
  const std::vector<int64_t> strides = meta.chunk.strides();
  std::vector<int64_t> corner(4), extent(4);
  for (size_t axis = 0; axis < 4; ++axis) {
    corner[axis] = chunk[axis] * meta.chunk.shape[axis];
    extent[axis] = std::min(meta.chunk.shape[axis], shape[axis] - corner[axis]);
  }
  thread_local std::vector<double> values;
  values.resize(static_cast<size_t>(extent[3]));
  std::vector<Tally> of_variables(static_cast<size_t>(extent[1]));
  for (int64_t t = 0; t < extent[0]; ++t) {
    const auto row = expected_->row_of_stored.find(corner[0] + t);
    const bool is_used = row != expected_->row_of_stored.end() &&
                         !std::ranges::binary_search(expected_->info.missing_rows, row->second);
    if (!is_used) continue;
    for (int64_t v = 0; v < extent[1]; ++v) {
      const auto variable = static_cast<size_t>(corner[1] + v);
      Tally found;
      for (int64_t e = 0; e < extent[2]; ++e) {
        const int64_t first = t * strides[0] + v * strides[1] + e * strides[2];
        zarr::convert_items(meta.type, items + first * meta.type.item_bytes, strides[3], extent[3],
                            values.data());
        const int64_t item =
            (((corner[0] + t) * shape[1] + corner[1] + v) * shape[2] + corner[2] + e) * shape[3] +
            corner[3];
        found.join(tally(values, variable, item));
      }
      of_variables[static_cast<size_t>(v)].join(found);
      if (!is_odd(found, variable)) continue;
      const std::lock_guard lock(mutex_);
      findings_[{row->second, variable}].join(found);
    }
  }
  const std::lock_guard lock(mutex_);
  for (size_t v = 0; v < of_variables.size(); ++v)
    variables_[static_cast<size_t>(corner[1]) + v].join(of_variables[v]);
}

Json StoreCheck::report() const {
  std::vector<std::string> faults = faults_, absent = absent_;
  std::ranges::sort(faults);
  std::ranges::sort(absent);
  Json json{{"store", store_->name()},
            {"sound", faults.empty() && absent.empty() && findings_.empty()},
            {"chunks", chunks_},
            {"bytes", bytes_},
            {"faults", faults},
            {"absent", absent},
            {"variables", Json::array()},
            {"findings", Json::array()}};
  for (size_t v = 0; v < variables_.size(); ++v) {
    Json of_variable{{"variable", expected_->info.variables[v]}};
    of_variable.update(variables_[v].json());
    json["variables"].push_back(std::move(of_variable));
  }
  for (const auto& [place, found] : findings_) {
    const auto& [row, variable] = place;
    Json finding{{"date", format_date(expected_->info.dates_s[static_cast<size_t>(row)])},
                 {"variable", expected_->info.variables[variable]}};
    finding.update(found.json());
    json["findings"].push_back(std::move(finding));
  }
  return json;
}

// "3 NaN, 1 outliers; values -1e+20 to 4".
std::string finding_text(const Json& found) {
  std::string text;
  for (const auto& [kind, words] : {std::pair{"nan", "NaN"},
                                    {"infinite", "infinite"},
                                    {"outliers", "outliers"},
                                    {"wrong", "not what their place says"}}) {
    const auto count = found[kind].get<int64_t>();
    if (count > 0) text += concat(text.empty() ? "" : ", ", count, " ", words);
  }
  if (found["minimum"].is_null()) return text;
  char range[64];
  std::snprintf(range, sizeof range, "; values %.6g to %.6g", found["minimum"].get<double>(),
                found["maximum"].get<double>());
  return text + range;
}

}  // namespace

Json check_store(const StorePtr& store, const CheckOptions& options, ProgressSink* progress) {
  return StoreCheck(store, options, progress).run();
}

std::string check_text(const Json& report) {
  constexpr size_t kMostFindings = 40;
  std::string text;
  for (const Json& fault : report["faults"])
    text += concat("damaged: ", fault.get<std::string>(), "\n");
  for (const Json& absent : report["absent"])
    text += concat("absent: ", absent.get<std::string>(), "\n");
  size_t shown = 0;
  for (const Json& found : report["findings"]) {
    if (++shown > kMostFindings) break;
    text += concat(found["date"].get<std::string>(), "  ", found["variable"].get<std::string>(),
                   ": ", finding_text(found), "\n");
  }
  const size_t findings = report["findings"].size();
  if (findings > kMostFindings)
    text += concat("and ", findings - kMostFindings, " more (--json has all)\n");
  for (const Json& variable : report["variables"]) {
    const auto nan = variable["nan"].get<int64_t>();
    if (nan == 0) continue;
    text += concat(variable["variable"].get<std::string>(), ": ", nan, " of ",
                   variable["values"].get<int64_t>(), " values are NaN\n");
  }
  text += concat(report["chunks"].get<int64_t>(), " chunks decoded, ",
                 format_bytes(report["bytes"].get<double>()), ": ");
  if (report["sound"].get<bool>()) return text + "sound\n";
  return text + concat("damaged ", report["faults"].size(), ", absent chunks ",
                       report["absent"].size(), ", fields with odd values ", findings, "\n");
}

}  // namespace aifs::data
