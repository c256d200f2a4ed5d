// SPDX-License-Identifier: Apache-2.0
#include "data/sources/anemoi_metadata.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/check.h"
#include "core/time.h"
#include "data/fields/time_axis.h"
#include "data/zarr/convert.h"
#include "data/zarr/in_file.h"

namespace aifs::data {

namespace {

using zarr::Json;
using StorePtr = std::shared_ptr<const zarr::Store>;

constexpr std::string_view kTendencies = "statistics_tendencies_";
constexpr std::string_view kStdev = "stdev";

// Reads one-dimensional arrays, and remembers which of their values no chunk gave.
class VectorReader {
 public:
  // `data_file`: of the metadata of data, for messages.
  VectorReader(StorePtr store, std::string data_file, bool strict,
               std::vector<std::string>& warnings)
      : store_(std::move(store)),
        data_file_(std::move(data_file)),
        strict_(strict),
        warnings_(warnings) {}

  const StorePtr& store() const { return store_; }

  // As many items as data has `counted` ("cells"). Chunk by chunk, so that a shape beyond what is
  // there ends before it costs memory.
  template <class T>
  std::vector<T> read(const zarr::Array& array, int64_t length, const char* counted) {
    const zarr::ArrayMeta& meta = array.meta();
    if (meta.shape != std::vector<int64_t>{length}) {
      throw DataError(concat("'", meta.file, "': shape ", Json(meta.shape).dump(), ", but '",
                             data_file_, "' has ", length, " ", counted));
    }
    std::vector<T> values;
    zarr::ChunkScratch scratch;
    num_absent_ = 0;
    const int64_t step = meta.chunk.shape[0];
    for (int64_t first = 0; first < length; first += step) {
      const int64_t count = std::min(step, length - first);
      const int64_t chunk = first / step;
      const auto* items = array.decode_chunk({&chunk, 1}, {}, scratch).items;
      if (!items) count_absent(array, chunk, count);
      values.resize(values.size() + static_cast<size_t>(count), meta.fill.as<T>(meta.type));
      if (items) zarr::convert_items(meta.type, items, 1, count, &values[values.size() - count]);
    }
    if (num_absent_ > 0) {
      warnings_.push_back(concat("'", meta.file, "': ", num_absent_, " of ", length,
                                 " values have no chunk and are its fill_value ",
                                 meta.fill.text(meta.type), " (", first_absent_, ")"));
    }
    return values;
  }
  // Values of the last array that no chunk gave, and the first such chunk.
  int64_t num_absent() const { return num_absent_; }
  const std::string& first_absent() const { return first_absent_; }

 private:
  void count_absent(const zarr::Array& array, int64_t chunk, int64_t count) {
    constexpr int64_t kMostAbsent = 1 << 20;  // beyond, somebody lies about the shape
    if (strict_) {
      throw DataError(array.absent_text({&chunk, 1}),
                      concat("restore the file; without data.dataset.strict it is read as the "
                             "fill_value ",
                             array.meta().fill.text(array.meta().type)));
    }
    if (num_absent_ == 0) first_absent_ = array.absent_text({&chunk, 1});
    num_absent_ += count;
    if (num_absent_ > kMostAbsent) {
      throw DataError(concat("'", array.meta().file, "': more than ", kMostAbsent,
                             " values have no chunk: ", first_absent_));
    }
  }

  StorePtr store_;
  std::string data_file_;
  bool strict_;
  std::vector<std::string>& warnings_;
  int64_t num_absent_ = 0;
  std::string first_absent_;
};

// -------------------------------------------------------------------------------- attributes ---

// An attribute, or null.
Json attribute(const zarr::Group& group, const char* name) {
  return group.attributes.value(name, Json());
}

[[noreturn]] void bad_attribute(const zarr::Group& group, const char* name,
                                const std::string& why) {
  throw DataError(concat("'", group.attributes_file, "': attribute '", name, "' ", why));
}

std::vector<std::string> variable_names(const zarr::Group& group, int64_t expected,
                                        const std::string& data_file) {
  const Json list = attribute(group, "variables");
  std::vector<std::string> names;
  if (list.is_array()) {
    for (const Json& name : list) {
      if (!name.is_string()) {
        bad_attribute(group, "variables", concat("holds ", zarr::shown(name), ", not a name"));
      }
      names.push_back(name.get<std::string>());
    }
  } else if (const Json indices = attribute(group, "name_to_index");
             list.is_null() && indices.is_object()) {
    names.resize(indices.size());
    for (const auto& [name, index] : indices.items()) {
      if (!index.is_number_unsigned() || index.get<uint64_t>() >= names.size()) {
        bad_attribute(group, "name_to_index", concat("does not number the variables: ", name));
      }
      names[index.get<size_t>()] = name;
    }
  } else {
    bad_attribute(group, "variables", concat("is no list of names: ", zarr::shown(list)));
  }
  if (static_cast<int64_t>(names.size()) != expected) {
    bad_attribute(
        group, "variables",
        concat("has ", names.size(), " names, '", data_file, "' has ", expected, " variables"));
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) bad_attribute(group, "variables", "holds an empty name");
    if (!seen.insert(name).second) {
      bad_attribute(group, "variables", concat("names '", name, "' twice"));
    }
  }
  return names;
}

std::optional<int64_t> declared_frequency(const zarr::Group& group) {
  const Json value = attribute(group, "frequency");
  if (value.is_null()) return std::nullopt;
  try {
    if (value.is_number_integer()) return parse_duration(value.dump());  // hours, in old datasets
    if (value.is_string()) return parse_duration(value.get<std::string>());
  } catch (const Error& error) {
    bad_attribute(group, "frequency", concat("is wrong: ", error.what()));
  }
  bad_attribute(group, "frequency", concat("is no duration: ", zarr::shown(value)));
}

std::vector<int64_t> missing_dates(const zarr::Group& group) {
  const Json list = attribute(group, "missing_dates");
  std::vector<int64_t> dates_s;
  if (list.is_null()) return dates_s;
  if (!list.is_array()) bad_attribute(group, "missing_dates", "is no list");
  for (const Json& date : list) {
    try {
      if (!date.is_string()) throw Error(concat(zarr::shown(date), " is no text"));
      dates_s.push_back(parse_date(date.get<std::string>()));
    } catch (const Error& error) {
      bad_attribute(group, "missing_dates", concat("is wrong: ", error.what()));
    }
  }
  return dates_s;
}

std::vector<int64_t> field_shape(const zarr::Group& group, int64_t num_cells,
                                 const std::string& data_file) {
  const Json value = attribute(group, "field_shape");
  if (value.is_null()) return {num_cells};
  std::vector<int64_t> shape;
  int64_t product = 1;
  for (const Json& length : value) {
    const int64_t n = length.is_number_integer() ? length.get<int64_t>() : 0;
    if (n < 1 || n > num_cells) break;
    shape.push_back(n);
    product = product > num_cells ? product : product * n;
  }
  if (!value.is_array() || shape.size() != value.size() || product != num_cells) {
    bad_attribute(group, "field_shape",
                  concat(zarr::shown(value), " does not hold the ", num_cells, " cells of '",
                         data_file, "'"));
  }
  return shape;
}

// Names in the attribute "constant_fields"; older datasets have none.
std::set<std::string> declared_constant(const zarr::Group& group) {
  const Json list = attribute(group, "constant_fields");
  std::set<std::string> names;
  if (list.is_null()) return names;
  if (!list.is_array()) bad_attribute(group, "constant_fields", "is no list of names");
  for (const Json& name : list) {
    if (!name.is_string()) {
      bad_attribute(group, "constant_fields", concat("holds ", zarr::shown(name), ", not a name"));
    }
    names.insert(name.get<std::string>());
  }
  return names;
}

// True if "variables_metadata" calls a variable constant, by the new or the old name of the key.
bool described_constant(const Json& metadata, const std::string& variable) {
  if (!metadata.is_object()) return false;
  const auto found = metadata.find(variable);
  if (found == metadata.end() || !found->is_object()) return false;
  for (const char* key : {"constant_in_time", "is_constant_in_time"}) {
    const auto flag = found->find(key);
    if (flag != found->end() && flag->is_boolean() && flag->get<bool>()) return true;
  }
  return false;
}

// As Anemoi does where the attribute says nothing: what has no tendency over one step is constant.
std::vector<std::string> constant_fields(const zarr::Group& group, const DatasetInfo& info) {
  const std::set<std::string> declared = declared_constant(group);
  const Json metadata = attribute(group, "variables_metadata");
  const auto step = info.tendencies.find(info.frequency_s);
  std::vector<std::string> names;
  for (size_t v = 0; v < info.variables.size(); ++v) {
    const std::string& name = info.variables[v];
    const bool is_still = step != info.tendencies.end() && step->second.mean[v] == 0.0 &&
                          step->second.stdev[v] == 0.0;
    if (is_still || declared.contains(name) || described_constant(metadata, name))
      names.push_back(name);
  }
  return names;
}

std::optional<int64_t> period_of(const Json& described) {
  if (!described.contains("process")) return 0;
  const auto period = described.find("period");
  if (period == described.end() || !period->is_array() || period->size() != 2) return {};
  int64_t ends_s[2] = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    const Json& end = (*period)[i];
    try {
      if (!end.is_string() && !end.is_number_integer()) return {};
      ends_s[i] = parse_duration(end.is_string() ? end.get<std::string>() : end.dump());
    } catch (const Error&) {  // written by somebody else: not worth a failure
      return {};
    }
  }
  return ends_s[1] - ends_s[0];
}

// Returns what "variables_metadata" says of the kinds of variables; what is odd in it says nothing.
std::vector<VariableKind> variable_kinds(const zarr::Group& group,
                                         const std::vector<std::string>& variables) {
  const Json metadata = attribute(group, "variables_metadata");
  const auto text = [](const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  std::vector<VariableKind> kinds;
  for (const std::string& name : variables) {
    VariableKind& kind = kinds.emplace_back();
    if (!metadata.is_object()) continue;
    const auto found = metadata.find(name);
    if (found == metadata.end() || !found->is_object()) continue;
    kind.units = text(*found, "units");
    kind.process = text(*found, "process");
    kind.period_s = period_of(*found);
    const auto mars = found->find("mars");
    if (mars != found->end() && mars->is_object()) kind.level_type = text(*mars, "levtype");
  }
  return kinds;
}

void check_layout(const zarr::Group& group) {
  for (const char* name : {"layout", "format"}) {  // its name until 0.5.36
    const Json layout = attribute(group, name);
    if (layout.is_null()) continue;
    if (layout != "gridded") {
      bad_attribute(group, name,
                    concat(zarr::shown(layout),
                           ": only the layout \"gridded\" can be "
                           "read"));
    }
    return;
  }
}

// ------------------------------------------------------------------------------------- arrays ---

TimeAxis time_axis(VectorReader& reader, const zarr::Group& group, int64_t num_stored) {
  const zarr::Array array(reader.store(), "dates");
  if (array.meta().type.kind != zarr::Kind::kDate) {
    throw DataError(concat("'", array.meta().file, "': dtype ", array.meta().type.name(),
                           " does not hold dates"));
  }
  const auto counts = reader.read<int64_t>(array, num_stored, "dates");
  const bool has_absent = reader.num_absent() > 0;
  const std::optional<int64_t> frequency_s = declared_frequency(group);
  const std::vector<int64_t> missing_s = missing_dates(group);
  const auto make = [&] {
    std::vector<int64_t> dates_s;
    for (const int64_t count : counts) {
      dates_s.push_back(
          zarr::in_file("dates", [&] { return zarr::to_seconds(array.meta().type.unit, count); }));
    }
    return make_time_axis(dates_s, frequency_s, missing_s);
  };
  const std::string files = concat(array.meta().file, "' with '", group.attributes_file);
  return zarr::in_file(files, [&] {
    if (!has_absent) return make();
    try {
      return make();
    } catch (const DataError& error) {  // the cause, before what comes of it
      throw DataError(concat("dates: ", reader.num_absent(), " of ", num_stored,
                             " have no chunk and read as the fill_value (", reader.first_absent(),
                             "): ", error.what()),
                      "restore the chunks of dates from a copy of the dataset");
    }
  });
}

// The array `name`, or `old_name` if only that is there.
std::vector<double> coordinates(VectorReader& reader, const char* name, const char* old_name,
                                int64_t num_cells, double min_deg, double max_deg) {
  const StorePtr& store = reader.store();
  constexpr double kRounding_deg = 1e-5;  // of float32 coordinates
  const bool is_old = !zarr::node_exists(*store, name) && zarr::node_exists(*store, old_name);
  const zarr::Array array(store, is_old ? old_name : name);
  const auto values = reader.read<double>(array, num_cells, "cells");
  for (size_t n = 0; n < values.size(); ++n) {
    if (!(values[n] >= min_deg - kRounding_deg && values[n] <= max_deg + kRounding_deg)) {
      throw DataError(concat("'", array.meta().file, "': ", name, " of cell ", n, " is ", values[n],
                             ", outside [", min_deg, ", ", max_deg, "]"));
    }
  }
  return values;
}

// Reads the arrays prefix + "mean" and so on. One that is not there is an error if `required`, else
// it is all NaN.
Statistics read_statistics(VectorReader& reader, const std::string& prefix, int64_t num_variables,
                           bool required) {
  const StorePtr& store = reader.store();
  const auto read = [&](const char* statistic) {
    const std::string name = prefix + statistic;
    if (!required && !zarr::node_exists(*store, name)) {
      return std::vector<double>(static_cast<size_t>(num_variables),
                                 std::numeric_limits<double>::quiet_NaN());
    }
    return reader.read<double>(zarr::Array(store, name), num_variables, "variables");
  };
  return {read("mean"), read("stdev"), read("minimum"), read("maximum")};
}

// All there are: names spell the same duration in several ways ("30h", "108000s"), so they are
// listed, not guessed.
std::map<int64_t, Statistics> read_tendencies(VectorReader& reader, int64_t num_variables) {
  std::map<int64_t, Statistics> result;
  for (const std::string& name : reader.store()->root_names()) {
    if (!name.starts_with(kTendencies) || !name.ends_with(kStdev)) continue;
    const std::string prefix = name.substr(0, name.size() - kStdev.size());
    int64_t difference_s = 0;
    try {
      difference_s = parse_duration(std::string_view(prefix).substr(
          kTendencies.size(), prefix.size() - kTendencies.size() - 1));
    } catch (const Error&) {
      continue;  // an array of somebody else
    }
    result.emplace(difference_s, read_statistics(reader, prefix, num_variables, false));
  }
  return result;
}

// Says which means cannot be those of their variables: chunks of statistics are absent.
void note_odd_means(const DatasetInfo& info, std::vector<std::string>& warnings) {
  std::string names;
  const Statistics& s = info.statistics;
  for (size_t v = 0; v < info.variables.size(); ++v) {
    if (s.mean[v] >= s.minimum[v] && s.mean[v] <= s.maximum[v]) continue;
    if (std::isnan(s.mean[v] + s.minimum[v] + s.maximum[v])) continue;
    names += concat(names.empty() ? "" : ", ", info.variables[v]);
  }
  if (names.empty()) return;
  warnings.push_back(concat("'", info.name, "': mean lies outside minimum and maximum for ", names,
                            ": are chunks of the statistics lost?"));
}

// One date must fit into memory, whatever the shape says.
void check_row_size(const zarr::ArrayMeta& meta) {
  constexpr double kMostBytes = 0x1p40;
  double bytes = sizeof(float);
  for (size_t axis = 1; axis < meta.shape.size(); ++axis)
    bytes *= static_cast<double>(meta.shape[axis]);
  if (bytes <= kMostBytes) return;
  throw DataError(concat("'", meta.file, "': shape ", Json(meta.shape).dump(), ": one date has ",
                         bytes, " bytes, more than can be read"));
}

}  // namespace

zarr::Group open_anemoi_group(const zarr::Store& store) {
  auto group = zarr::read_root_group(store);
  if (!group) {
    throw DataError(
        concat("'", store.name(), "' is not a Zarr group: neither .zgroup nor zarr.json is there"));
  }
  check_layout(*group);
  for (const char* name : {"_build", "_copy"}) {
    if (!zarr::node_exists(store, name)) continue;
    throw DataError(concat("'", store.name(), "' is an unfinished dataset: it still holds ", name),
                    "finish it with anemoi-datasets, or remove what is left of its making");
  }
  return std::move(*group);
}

AnemoiMetadata read_anemoi_metadata(const std::shared_ptr<const zarr::Store>& store,
                                    const zarr::Group& group, const zarr::Array& data, bool strict,
                                    bool needs_statistics) {
  const std::vector<int64_t>& shape = data.meta().shape;
  if (shape.size() != 4 || *std::min_element(shape.begin(), shape.end()) < 1) {
    throw DataError(concat("'", data.meta().file, "': shape ", Json(shape).dump(),
                           " is not (dates, variables, members, cells)"));
  }
  check_row_size(data.meta());
  AnemoiMetadata metadata;
  VectorReader reader(store, data.meta().file, strict, metadata.warnings);
  DatasetInfo& info = metadata.info;
  info.name = store->name();
  info.variables = variable_names(group, shape[1], data.meta().file);
  info.ensemble_size = shape[2];
  info.latitudes_deg = coordinates(reader, "latitudes", "latitude", shape[3], -90.0, 90.0);
  info.longitudes_deg = coordinates(reader, "longitudes", "longitude", shape[3], -180.0, 360.0);
  info.field_shape = field_shape(group, shape[3], data.meta().file);
  TimeAxis axis = time_axis(reader, group, shape[0]);
  info.dates_s = std::move(axis.dates_s);
  info.frequency_s = axis.frequency_s;
  info.missing_rows = std::move(axis.missing_rows);
  metadata.stored_rows = std::move(axis.stored_rows);
  const size_t num_warnings = metadata.warnings.size();
  info.statistics = read_statistics(reader, "", shape[1], needs_statistics);
  if (metadata.warnings.size() > num_warnings) note_odd_means(info, metadata.warnings);
  info.tendencies = read_tendencies(reader, shape[1]);
  info.constant_fields = constant_fields(group, info);
  info.resolution = group.attributes.contains("resolution") ? group.attributes["resolution"].dump()
                                                            : std::string();
  info.is_float64 = data.meta().type.kind == zarr::Kind::kFloat && data.meta().type.item_bytes == 8;
  info.kinds = variable_kinds(group, info.variables);
  return metadata;
}

}  // namespace aifs::data
