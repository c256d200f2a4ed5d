// SPDX-License-Identifier: Apache-2.0
#include "conformance/dataset_checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "conformance/dataset_stores.h"
#include "conformance/field_hash.h"
#include "core/time.h"

namespace aifs::conformance {

namespace {

using data::AnemoiDataset;
using data::DatasetInfo;
using data::Statistics;

bool same_number(const Json& expected, double value) {
  if (expected.is_number()) return expected.get<double>() == value;
  if (expected == "Infinity") return value == INFINITY;
  if (expected == "-Infinity") return value == -INFINITY;
  return std::isnan(value) && (expected.is_null() || expected == "NaN");
}

std::vector<std::string> texts_of(const std::vector<int64_t>& dates_s) {
  std::vector<std::string> texts;
  for (const int64_t date_s : dates_s)
    texts.push_back(format_date(date_s));
  return texts;
}

std::vector<std::string> missing_texts(const DatasetInfo& info) {
  std::vector<std::string> texts;
  for (const int64_t row : info.missing_rows)
    texts.push_back(format_date(info.dates_s[static_cast<size_t>(row)]));
  return texts;
}

const std::vector<double>& member(const Statistics& statistics, const std::string& name) {
  if (name == "mean") return statistics.mean;
  if (name == "stdev") return statistics.stdev;
  if (name == "minimum") return statistics.minimum;
  if (name == "maximum") return statistics.maximum;
  throw Error(concat("there is no statistic '", name, "'"));
}

// {"mean": [V], ...}
void check_statistics(const Json& expected, const Statistics& statistics, const std::string& what,
                      Comparison& comparison) {
  for (const auto& [name, values] : expected.items()) {
    comparison.require(same_numbers(values, member(statistics, name)), concat(what, ".", name));
  }
}

// {"2t": [mean, stdev, minimum, maximum], ...}; the list may be shorter.
void check_statistics_by_variable(const Json& expected, const Statistics& statistics,
                                  const DatasetInfo& info, const std::string& what,
                                  Comparison& comparison) {
  for (const auto& [variable, values] : expected.items()) {
    const auto v = static_cast<size_t>(info.column(variable));
    const double ours[] = {statistics.mean[v], statistics.stdev[v], statistics.minimum[v],
                           statistics.maximum[v]};
    for (size_t i = 0; i < values.size(); ++i)
      comparison.require(same_number(values[i], ours[i]), concat(what, ".", variable, ".", i));
  }
}

const Statistics& tendency(const DatasetInfo& info, const std::string& duration) {
  const auto found = info.tendencies.find(parse_duration(duration));
  if (found == info.tendencies.end()) {
    throw DataError(concat("no tendencies over ", duration, " were found"));
  }
  return found->second;
}

// Places of single cells. The last entry is the last cell, the first two are the first ones if
// there are more than two; what is between depends on the grid and must only exist.
void check_cells(const Json& expected, const DatasetInfo& info, Comparison& comparison) {
  const auto at = [&](const Json& place, size_t n) {
    return place[0] == info.latitudes_deg[n] && place[1] == info.longitudes_deg[n];
  };
  const size_t num_cells = info.latitudes_deg.size();
  for (size_t i = 0; i < expected.size(); ++i) {
    bool found = false;
    if (i + 1 == expected.size()) {
      found = at(expected[i], num_cells - 1);
    } else if (i < 2) {
      found = at(expected[i], i);
    } else {
      for (size_t n = 0; n < num_cells && !found; ++n)
        found = at(expected[i], n);
    }
    comparison.require(found, concat("place ", i, " of first_last_cells"));
  }
}

void check_literals(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  for (const Json& literal : expected) {
    zarr::Region region;
    region.begin = literal["index"].get<std::vector<int64_t>>();
    region.end = region.begin;
    for (int64_t& end : region.end)
      ++end;
    comparison.require(same_number(literal["value"], dataset.data().read<double>(region)[0]),
                       concat("value at ", literal["index"].dump()));
  }
}

// {"data[0]": hash} or {"data[0]": {"shape": ..., "sha256": hash}}. Whole rows are also read
// through the dataset.
void check_slices(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  const DatasetInfo& info = dataset.info();
  for (const auto& [text, value] : expected.items()) {
    const auto slice = parse_slice(text, dataset.data().meta().shape);
    const Json& hash = value.is_object() ? value["sha256"] : value;
    if (value.is_object()) comparison.require(value["shape"] == shape_of(slice), text + " shape");
    comparison.require(hash == hash_of(dataset.data(), slice), text);
    const bool whole_rows = shape_of(slice).size() >= 3 &&
                            slice[1].end - slice[1].begin == info.num_variables() &&
                            slice[3].end - slice[3].begin == info.num_nodes();
    bool readable =
        whole_rows && info.dates_s.size() == static_cast<size_t>(dataset.data().meta().shape[0]);
    for (const int64_t row : info.missing_rows)
      readable = readable && (row < slice[0].begin || row >= slice[0].end);
    if (!readable) continue;
    Sha256 read;
    for (int64_t row = slice[0].begin; row < slice[0].end; ++row)
      add_to_hash(read_fields(dataset, row), read);
    comparison.require(hash == read.finish(), text + " through the dataset");
  }
}

void check_nan_fraction(const Json& expected, const AnemoiDataset& dataset,
                        Comparison& comparison) {
  const DatasetInfo& info = dataset.info();
  std::vector<int64_t> counts(static_cast<size_t>(info.num_variables()), 0);
  for (int64_t row = 0; row < info.num_rows(); ++row) {
    const std::vector<float> fields = read_fields(dataset, row);
    const size_t per_variable = fields.size() / counts.size();
    for (size_t i = 0; i < fields.size(); ++i)
      counts[i / per_variable] += std::isnan(fields[i]) ? 1 : 0;
  }
  const auto total = static_cast<double>(info.num_rows() * info.ensemble_size * info.num_nodes());
  for (const auto& [variable, fraction] : expected.items()) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(info.column(variable))]);
    comparison.add("NaN in " + variable, std::abs(count / total - fraction.get<double>()), 1e-12);
  }
}

void check_units(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  const Json metadata = dataset.attributes().value("variables_metadata", Json::object());
  for (const auto& [variable, unit] : expected.items()) {
    comparison.require(metadata.value(variable, Json::object()).value("units", Json()) == unit,
                       "unit of " + variable);
  }
}

void check_chunks(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  const zarr::ArrayMeta& meta = dataset.data().meta();
  // zarr-python calls the shard a chunk if the shard as a whole is compressed again.
  const bool outer = meta.sharding && !meta.sharding->codecs.empty();
  comparison.require(expected == (outer ? meta.sharding->shape : meta.chunk.shape), "chunks");
}

void check_constant_fields(const Json& expected, const DatasetInfo& info, Comparison& comparison) {
  const std::string frequency = format_duration(info.frequency_s);
  const Statistics& step = tendency(info, frequency);
  Json constant = Json::array();
  for (size_t v = 0; v < info.variables.size(); ++v) {
    if (step.mean[v] == 0.0 && step.stdev[v] == 0.0) constant.push_back(info.variables[v]);
  }
  comparison.require(expected == constant, "constant_fields");
}

// Dates of the rows that the store has. Where it leaves dates out, Python counts the others only.
void check_dates(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  const std::vector<int64_t> numbers = stored_rows(dataset);
  std::vector<int64_t> stored_s;
  for (size_t row = 0; row < numbers.size(); ++row) {
    if (numbers[row] >= 0) stored_s.push_back(dataset.info().dates_s[row]);
  }
  comparison.require(expected == texts_of(stored_s), "dates");
}

// Checks the rows that are missing in this way, too.
void check_missing(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  const std::vector<int64_t> numbers = stored_rows(dataset);
  std::vector<int64_t> missing;
  for (const int64_t row : dataset.info().missing_rows) {
    if (const int64_t number = numbers[static_cast<size_t>(row)]; number >= 0)
      missing.push_back(number);
  }
  comparison.require(expected == missing, "missing");
}

// Types are equal in kind and width, and in the order of bytes where both names tell one: "float32"
// of format 3 does not, nor does "|u1".
void check_stored_type(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  const auto name = expected.get<std::string>();
  const bool is_numpy = !name.empty() && std::string("<>|=").find(name[0]) != std::string::npos;
  const zarr::DataType wanted =
      is_numpy ? zarr::parse_numpy_type(name[0] == '=' ? "<" + name.substr(1) : name)
               : zarr::parse_type_name(name);
  const zarr::DataType& type = dataset.data().meta().type;
  const bool ordered = is_numpy && name[0] != '|' && type.item_bytes > 1;
  comparison.require(type.kind == wanted.kind && type.item_bytes == wanted.item_bytes,
                     concat("stored_dtype: ", type.name(), ", expected ", name));
  comparison.require(!ordered || type.big_endian == wanted.big_endian,
                     concat("stored_dtype: another order of bytes than ", name));
}

void check_opened(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  if (is_refusal(expected)) return;  // the package refuses, we need not
  const DatasetInfo& info = dataset.info();
  comparison.require(expected.value("shape", Json()) == dataset.data().meta().shape,
                     "open_dataset.shape");
  check_missing(expected["missing"], dataset, comparison);
  comparison.require(seconds_of(expected["frequency"]) == info.frequency_s,
                     "open_dataset.frequency");
  comparison.require(expected["sha256_rows_not_missing"] == hash_of_readable_rows(dataset),
                     "open_dataset.sha256_rows_not_missing");
}

using Check = void (*)(const Json&, const AnemoiDataset&, Comparison&);

// Keys with a check of their own.
const std::map<std::string, Check>& store_checks() {
  static const std::map<std::string, Check> kChecks{
      {"shape", [](const Json& e, const AnemoiDataset& d,
                   Comparison& c) { c.require(e == d.data().meta().shape, "shape"); }},
      {"chunks", check_chunks},
      {"stored_dtype", check_stored_type},
      {"variables", [](const Json& e, const AnemoiDataset& d,
                       Comparison& c) { c.require(e == d.info().variables, "variables"); }},
      {"field_shape", [](const Json& e, const AnemoiDataset& d,
                         Comparison& c) { c.require(e == d.info().field_shape, "field_shape"); }},
      {"frequency",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         c.require(seconds_of(e) == d.info().frequency_s, "frequency");
       }},
      {"frequency_seconds",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         c.require(e == d.info().frequency_s, "frequency_seconds");
       }},
      {"first_date",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         c.require(e == format_date(d.info().dates_s.front()), "first_date");
       }},
      {"last_date",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         c.require(e == format_date(d.info().dates_s.back()), "last_date");
       }},
      {"dates", check_dates},
      {"missing", check_missing},
      {"missing_dates",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         c.require(e == missing_texts(d.info()), "missing_dates");
       }},
      {"latitudes_sha256_f8",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         c.require(e == hash_of(d.info().latitudes_deg), "latitudes");
       }},
      {"longitudes_sha256_f8",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         c.require(e == hash_of(d.info().longitudes_deg), "longitudes");
       }},
      {"first_last_cells",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) { check_cells(e, d.info(), c); }},
      {"statistics",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         check_statistics_by_variable(e, d.info().statistics, d.info(), "statistics", c);
       }},
      {"statistics_window",
       [](const Json& e, const AnemoiDataset& d, Comparison& c) {
         c.require(e[0] == d.attributes().value("statistics_start_date", Json()) &&
                       e[1] == d.attributes().value("statistics_end_date", Json()),
                   "statistics_window");
       }},
      {"constant_fields", [](const Json& e, const AnemoiDataset& d,
                             Comparison& c) { check_constant_fields(e, d.info(), c); }},
      {"sha256", check_slices},
      {"slices", check_slices},
      {"literals", check_literals},
      {"nan_fraction", check_nan_fraction},
      {"units", check_units},
      {"open_dataset", check_opened}};
  return kChecks;
}

// Keys such as mean, stdev_sha256_f8, tendencies_6h, statistics_tendencies_6h_stdev.
void check_statistics_key(const std::string& key, const Json& expected, const DatasetInfo& info,
                          Comparison& comparison) {
  const std::string hash_suffix = "_sha256_f8";
  const bool hashed = key.ends_with(hash_suffix);
  std::string name = hashed ? key.substr(0, key.size() - hash_suffix.size()) : key;
  const Statistics* statistics = &info.statistics;
  if (const size_t at = name.find("tendencies_"); at != std::string::npos) {
    const std::string rest = name.substr(at + std::string("tendencies_").size());
    const size_t underscore = rest.find('_');
    statistics = &tendency(info, rest.substr(0, underscore));
    name = underscore == std::string::npos ? "" : rest.substr(underscore + 1);
  }
  if (expected.is_object() && !is_refusal(expected)) {
    check_statistics_by_variable(expected, *statistics, info, key, comparison);
  } else if (hashed) {
    comparison.require(expected == hash_of(member(*statistics, name)), key);
  } else {
    comparison.require(same_numbers(expected, member(*statistics, name)), key);
  }
}

// True if the package refuses what a key describes; some keys hold texts of their own.
bool refused(const std::string& key, const Json& value) {
  static const std::set<std::string> kTexts{"stored_dtype", "frequency", "first_date", "last_date"};
  const bool is_text = kTexts.contains(key) || key.find("sha256_") != std::string::npos;
  return is_refusal(value) && !(is_text && value.is_string());
}

bool is_statistics_key(const std::string& key) {
  for (const char* start :
       {"mean", "stdev", "minimum", "maximum", "tendencies_", "statistics_tendencies_"}) {
    if (key.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

bool same_numbers(const Json& expected, const std::vector<double>& values) {
  if (!expected.is_array() || expected.size() != values.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!same_number(expected[i], values[i])) return false;
  }
  return true;
}

int64_t seconds_of(const Json& frequency) {
  return parse_duration(frequency.is_string() ? frequency.get<std::string>() : frequency.dump());
}

void check_store(const Json& expected, const AnemoiDataset& dataset, Comparison& comparison) {
  for (const auto& [key, value] : expected.items()) {
    const auto found = store_checks().find(key);
    if (found != store_checks().end()) {
      if (!refused(key, value)) found->second(value, dataset, comparison);
    } else if (is_statistics_key(key)) {
      check_statistics_key(key, value, dataset.info(), comparison);
    }
  }
}

namespace {

void check_sample(const Json& expected, const std::string& text, int64_t row,
                  const data::Dataset& dataset, Comparison& comparison) {
  const DatasetInfo& info = dataset.info();
  const std::vector<float> fields = read_fields(dataset, row);
  const Json shape = {info.num_variables(), info.ensemble_size, info.num_nodes()};
  comparison.require(expected["shape"] == shape, concat("shape of sample ", text));
  comparison.require(expected["sha256"] == hash_of(fields), concat("sample ", text));
  const Json first = expected.value("first", Json::array());
  const Json last = expected.value("last", Json::array());
  const size_t per_variable = fields.size() / info.variables.size();
  for (size_t i = 0; i < first.size(); ++i) {
    comparison.require(same_number(first[i], fields[i * per_variable]),
                       concat("first ", i, " of sample ", text));
    const size_t v = info.variables.size() - last.size() + i;
    comparison.require(same_number(last[i], fields[(v + 1) * per_variable - 1]),
                       concat("last ", i, " of sample ", text));
  }
}

void check_samples(const Json& samples, const data::Dataset& dataset, Comparison& comparison) {
  for (const auto& [text, expected] : samples.items()) {
    if (is_refusal(expected)) continue;  // says nothing of what a reader must do
    const auto slice = parse_slice(text, {dataset.info().num_rows()});
    check_sample(expected, text, slice[0].begin, dataset, comparison);
  }
}

void check_missing_rows(const data::Dataset& dataset, Comparison& comparison) {
  const DatasetInfo& info = dataset.info();
  std::vector<float> out(
      static_cast<size_t>(info.ensemble_size * info.num_nodes() * info.num_variables()));
  for (const int64_t row : info.missing_rows) {
    bool refused = false;
    try {
      dataset.read(row, {0, info.num_nodes()}, out);
    } catch (const DataError&) {
      refused = true;
    }
    comparison.require(refused, concat("reading the missing row ", row, " is an error"));
  }
}

// The value of a key, unless it is absent, null, or the package refuses what it describes.
const Json* stated(const Json& expected, const char* key, bool is_text = false) {
  const auto found = expected.find(key);
  if (found == expected.end() || found->is_null()) return nullptr;
  return is_refusal(*found) && !(is_text && found->is_string()) ? nullptr : &*found;
}

// One key, one comparison.
template <class Value>
void check_key(const Json& expected, const char* key, const Value& ours, Comparison& comparison) {
  if (const Json* value = stated(expected, key)) comparison.require(*value == ours, key);
}

void check_hash(const Json& expected, const char* key, const std::string& ours,
                Comparison& comparison) {
  if (const Json* value = stated(expected, key, /*is_text=*/true))
    comparison.require(*value == ours, key);
}

// Compares dates as numpy writes them: with microseconds where it counts them.
void check_date_texts(const Json& expected, const DatasetInfo& info, Comparison& comparison) {
  const Json* dates = stated(expected, "dates");
  if (!dates) return;
  Json seconds = Json::array();
  for (const Json& date : *dates) {
    const auto text = date.get<std::string>();
    seconds.push_back(text.substr(0, text.find(".000000")));
  }
  comparison.require(seconds == texts_of(info.dates_s), "dates");
}

// Coordinates of the first, the middle and the last cell, and hashes of all.
void check_places(const Json& expected, const DatasetInfo& info, Comparison& comparison) {
  check_key(expected, "cells", info.num_nodes(), comparison);
  check_key(expected, "grids",
            info.grids.empty() ? std::vector<int64_t>{info.num_nodes()} : info.grids, comparison);
  check_hash(expected, "latitudes_sha256_f8", hash_of(info.latitudes_deg), comparison);
  check_hash(expected, "longitudes_sha256_f8", hash_of(info.longitudes_deg), comparison);
  const Json* places = stated(expected, "latlon_first_last");
  const size_t last = info.latitudes_deg.size() - 1;
  const size_t cells[] = {0, (last + 1) / 2, last};
  for (size_t i = 0; places && i < places->size() && i < std::size(cells); ++i) {
    const Json& place = (*places)[i];
    comparison.require(
        place[0] == info.latitudes_deg[cells[i]] && place[1] == info.longitudes_deg[cells[i]],
        concat("place of cell ", cells[i]));
  }
}

}  // namespace

void check_options_result(const Json& expected, const data::Dataset& dataset,
                          Comparison& comparison) {
  const DatasetInfo& info = dataset.info();
  const std::vector<int64_t> shape{info.num_rows(), info.num_variables(), info.ensemble_size,
                                   info.num_nodes()};
  check_key(expected, "length", info.num_rows(), comparison);
  check_key(expected, "shape", shape, comparison);
  check_date_texts(expected, info, comparison);
  check_key(expected, "frequency_seconds", info.frequency_s, comparison);
  check_key(expected, "variables", info.variables, comparison);
  check_key(expected, "missing", info.missing_rows, comparison);
  check_places(expected, info, comparison);
  if (const Json* statistics = stated(expected, "statistics"))
    check_statistics(*statistics, info.statistics, "statistics", comparison);
  if (const Json* tendencies = stated(expected, "statistics_tendencies")) {
    check_statistics(*tendencies, tendency(info, format_duration(info.frequency_s)),
                     "statistics_tendencies", comparison);
  }
  for (const char* key : {"samples", "intended"}) {
    if (const Json* samples = stated(expected, key)) check_samples(*samples, dataset, comparison);
  }
  if (const Json* hash = stated(expected, "all_readable_rows_sha256", /*is_text=*/true))
    comparison.require(*hash == hash_of_readable_rows(dataset), "all readable rows");
  if (const Json* slice = stated(expected, "slice"); slice && slice->contains("sha256")) {
    const auto index = parse_slice((*slice)["index"].get<std::string>(), shape);
    comparison.require((*slice)["sha256"] == hash_of(read_slice(dataset, index)), "slice");
  }
  check_missing_rows(dataset, comparison);
}

void check_side_by_side(const Json& expected, const std::vector<data::DatasetPtr>& datasets,
                        Comparison& comparison) {
  const DatasetInfo& first = datasets.front()->info();
  int64_t length = first.num_rows();
  Json shapes = Json::array();
  std::set<int64_t> missing;
  for (const data::DatasetPtr& dataset : datasets) {
    const DatasetInfo& info = dataset->info();
    length = std::min(length, info.num_rows());
    shapes.push_back({info.num_rows(), info.num_variables(), info.ensemble_size, info.num_nodes()});
    missing.insert(info.missing_rows.begin(), info.missing_rows.end());
    check_missing_rows(*dataset, comparison);
  }
  check_key(expected, "length", length, comparison);
  check_key(expected, "shape", shapes, comparison);
  check_date_texts(expected, first, comparison);
  check_key(expected, "frequency_seconds", first.frequency_s, comparison);
  check_key(expected, "variables", first.variables, comparison);
  check_key(expected, "missing", missing, comparison);
  const Json* samples = stated(expected, "samples");
  if (!samples) return;
  for (const auto& [text, parts] : samples->items()) {
    if (is_refusal(parts)) continue;
    const auto slice = parse_slice(text, {length});
    comparison.require(parts.size() == datasets.size(), concat("parts of sample ", text));
    for (size_t i = 0; i < std::min(parts.size(), datasets.size()); ++i)
      check_sample(parts[i], concat(text, " of dataset ", i), slice[0].begin, *datasets[i],
                   comparison);
  }
}

}  // namespace aifs::conformance
