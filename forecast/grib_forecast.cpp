// SPDX-License-Identifier: Apache-2.0
#include "forecast/grib_forecast.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "core/check.h"
#include "core/time.h"
#include "data/fields/units.h"
#include "data/fields/variables.h"
#include "data/sources/grib_message.h"
#include "forecast/grib_grid.h"

namespace aifs::forecast {

namespace {

using data::GribMessage;

constexpr double kMissing = 1e30;  // stands for no value in a message with a bitmap
constexpr int64_t kTables = 28;    // version of WMO's tables

fs::path description_of(const fs::path& path) {
  return path.string() + ".json";
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

// The unit of time that all lead times are whole numbers of.
struct StepUnit {
  const char* name;
  int64_t seconds;
};
StepUnit step_unit(const ForecastContents& contents) {
  for (const StepUnit unit : {StepUnit{"h", 3600}, StepUnit{"m", 60}}) {
    const bool divides =
        std::ranges::all_of(contents.lead_times_s,
                            [&](int64_t lead_s) { return lead_s % unit.seconds == 0; }) &&
        std::ranges::all_of(contents.variables, [&](const ForecastVariable& variable) {
          return variable.period_s % unit.seconds == 0;
        });
    if (divides) return unit;
  }
  return {"s", 1};
}

// A variable with the message that is written again and again.
struct Parameter {
  GribMessage message;
  int64_t period_s = 0;  // that a value stands for; 0: an instant
  data::UnitMap units = {};
};

// Makes the messages of a forecast.
class Parameters {
 public:
  Parameters(const ForecastContents& contents, const GribOptions& options)
      : contents_(contents),
        options_(options),
        grid_(find_cell_rows(contents.latitudes_deg, contents.longitudes_deg)),
        unit_(step_unit(contents)) {}

  // Throws ConfigError.
  Parameter make(const ForecastVariable& variable) const {
    const auto [parameter, level] = data::split_variable_name(variable.name);
    const std::string wanted = grib_name(variable.name, parameter);
    const bool is_interval_first = variable.period_s > 0;
    std::string reason;
    for (const bool is_interval : {is_interval_first, !is_interval_first}) {
      GribMessage message = begin(is_interval);
      reason = message.try_set(is_number(wanted) ? "paramId" : "shortName", wanted);
      const std::string found = message.text(is_number(wanted) ? "paramId" : "shortName");
      if (!reason.empty() || found != wanted) continue;
      Parameter made{std::move(message)};
      if (is_interval) set_period(variable, made);
      if (level >= 0) set_level(variable, level, made.message);
      made.units = units_of(variable, made.message);
      finish(made.message);
      return made;
    }
    throw ConfigError("--grib-names",
                      concat("GRIB has no parameter '", wanted, "' for variable '", variable.name,
                             "'", reason.empty() ? "" : concat(": ", reason)),
                      "name one, as in --grib-names " + parameter +
                          "=SHORTNAME or =PARAMID, or leave the variable out with --variables");
  }

  // Latitudes or longitudes of the cells: number 1 or 2 of the table for them.
  GribMessage coordinates(int64_t number, const std::vector<double>& values) const {
    GribMessage message = begin(/*is_interval=*/false);
    message.set("discipline", int64_t{0});
    message.set("parameterCategory", int64_t{191});
    message.set("parameterNumber", number);
    finish(message);
    message.set("bitsPerValue", int64_t{32});
    message.set("values", std::span<const double>(values));
    return message;
  }

  bool tells_cells() const { return grid_.kind != CellRows::Kind::kUnstructured; }
  const StepUnit& unit() const { return unit_; }

 private:
  std::string grib_name(const std::string& variable, const std::string& parameter) const {
    for (const std::string& name : {variable, parameter}) {
      const auto found = options_.names.find(name);
      if (found != options_.names.end()) return found->second;
    }
    // Of two parameters of these names the one of the ocean comes first in ecCodes.
    static const std::map<std::string, std::string> others{{"sst", "34"}, {"vo", "138"}};
    const auto other = others.find(parameter);
    return other == others.end() ? parameter : other->second;
  }

  // What all messages have.
  GribMessage begin(bool is_interval) const {
    const CalendarTime start = to_calendar(contents_.start_s);
    const bool is_ensemble = contents_.num_members > 1;
    GribMessage message = GribMessage::new_edition2();
    message.set("tablesVersion", kTables);
    message.set("centre", std::string("ecmf"));  // whose names of parameters these are
    message.set("significanceOfReferenceTime", int64_t{1});
    message.set("dataDate", start.year * 10000 + start.month * 100 + start.day);
    message.set("hour", int64_t{start.hour});
    message.set("minute", int64_t{start.minute});
    message.set("second", int64_t{start.second});
    message.set("productionStatusOfProcessedData", int64_t{2});  // research
    message.set("typeOfProcessedData", int64_t{is_ensemble ? 4 : 1});
    message.set("productDefinitionTemplateNumber",
                int64_t{(is_interval ? 8 : 0) + (is_ensemble ? (is_interval ? 3 : 1) : 0)});
    message.set("typeOfGeneratingProcess", int64_t{is_ensemble ? 4 : 2});
    message.set("generatingProcessIdentifier", int64_t{255});
    if (is_ensemble) message.set("numberOfForecastsInEnsemble", contents_.num_members);
    message.set("shapeOfTheEarth", int64_t{6});  // a sphere of 6371.229 km
    return message;
  }

  // What may depend on the parameter.
  void finish(GribMessage& message) const {
    set_grid(grid_, message);
    message.set("bitsPerValue", options_.bits);
    for (const auto& [key, value] : options_.keys) {
      const std::string reason = message.try_set(key, value);
      if (!reason.empty())
        throw ConfigError("--grib-set", concat("'", key, "=", value, "': ", reason));
    }
  }

  void set_period(const ForecastVariable& variable, Parameter& made) const {
    made.period_s = variable.period_s > 0 ? variable.period_s : contents_.lead_times_s.front();
    constexpr int64_t kAccumulation = 1, kNone = 255;
    if (made.message.find_integer("typeOfStatisticalProcessing").value_or(kNone) == kNone)
      made.message.set("typeOfStatisticalProcessing", kAccumulation);
  }

  void set_level(const ForecastVariable& variable, int64_t level, GribMessage& message) const {
    if (!variable.level_type.empty() && variable.level_type != "pl" && variable.level_type != "ml")
      throw ConfigError("--format",
                        concat("variable '", variable.name, "' is on levels of type '",
                               variable.level_type, "', GRIB files can have \"pl\" and \"ml\""),
                        "leave it out with --variables");
    message.set("typeOfLevel",
                std::string(variable.level_type == "ml" ? "hybrid" : "isobaricInhPa"));
    message.set("level", level);
    if (message.integer("level") == level && message.text("shortName") != "unknown") return;
    throw ConfigError("--grib-names",
                      concat("what GRIB calls '", variable.name, "' has no levels in hPa"),
                      "name another parameter by its paramId");
  }

  data::UnitMap units_of(const ForecastVariable& variable, const GribMessage& message) const {
    const std::string units = message.text("units");
    if (variable.units.empty() || units.empty()) return {};
    const std::optional<data::UnitMap> map = data::convert_units(variable.units, units);
    if (map) return *map;
    if (!data::parse_unit(variable.units) || !data::parse_unit(units)) return {};
    throw ConfigError(
        "--grib-names",
        concat("variable '", variable.name, "' is in '", variable.units, "', the parameter '",
               message.text("shortName"), "' (", message.text("paramId"), ") in '", units, "'"),
        "name another parameter by its paramId");
  }

  const ForecastContents& contents_;
  const GribOptions& options_;
  CellRows grid_;
  StepUnit unit_;
};

class GribForecast : public ForecastFile {
 public:
  GribForecast(fs::path path, ForecastContents contents, const GribOptions& options)
      : path_(std::move(path)),
        contents_(std::move(contents)),
        temporary_(contents_.partial.path.empty() ? temporary_name(path_)
                                                  : contents_.partial.path) {
    const Parameters parameters(contents_, options);
    for (const ForecastVariable& variable : contents_.variables)
      parameters_.push_back(parameters.make(variable));
    unit_ = parameters.unit();
    if (!contents_.partial.state.empty()) {
      open_kept();
      return;
    }
    file_ = std::fopen(temporary_.c_str(), "wb");
    if (!file_)
      throw Error(
          concat("forecast file '", path_.string(), "': cannot be created: ", system_error_text()));
    if (parameters.tells_cells()) return;
    try {
      append(parameters.coordinates(1, contents_.latitudes_deg), "latitudes");
      append(parameters.coordinates(2, contents_.longitudes_deg), "longitudes");
    } catch (...) {
      discard();
      throw;
    }
  }
  ~GribForecast() override { discard(); }

  void write(int64_t lead_time, std::span<const float> fields) override {
    const auto members = static_cast<size_t>(contents_.num_members);
    const size_t variables = parameters_.size(), cells = contents_.latitudes_deg.size();
    AIFS_CHECK(fields.size() == members * variables * cells, "fields of another size");
    const int64_t lead_s = contents_.lead_times_s[static_cast<size_t>(lead_time)];
    for (size_t e = 0; e < members; ++e) {
      for (size_t v = 0; v < variables; ++v) {
        const std::string what =
            concat("variable '", contents_.variables[v].name, "' at ", format_lead_time(lead_s));
        // One of its own for each field: a constant one leaves other bits behind.
        GribMessage message = parameters_[v].message.clone();
        if (members > 1) message.set("perturbationNumber", static_cast<int64_t>(e));
        set_step(parameters_[v], message, lead_s);
        set_values(parameters_[v], message, fields.subspan((e * variables + v) * cells, cells),
                   what);
        append(message, what);
      }
    }
  }

  std::string keep() override {
    if (std::fflush(file_) != 0) fail("its last fields");
    flush_file(::fileno(file_), temporary_);
    is_kept_ = !contents_.partial.path.empty();
    return std::to_string(std::ftell(file_));
  }

  void finish() override {
    if (std::fclose(std::exchange(file_, nullptr)) != 0) fail("its last fields");
    sync_to_disk(temporary_);
    const nlohmann::ordered_json description{{kIdentityAttribute, contents_.identity},
                                             {"model", contents_.model},
                                             {"program", contents_.program}};
    write_file_atomic(description_of(path_), description.dump(1) + "\n");
    replace_file(temporary_, path_);
    finished_ = true;
  }

 private:
  // Cuts off what came behind the state.
  void open_kept() {
    std::error_code error;
    const uint64_t bytes = std::strtoull(contents_.partial.state.c_str(), nullptr, 10);
    if (fs::file_size(temporary_, error) < bytes || error)
      refuse_partial(temporary_, "is shorter than it was");
    fs::resize_file(temporary_, bytes, error);
    if (!error) file_ = std::fopen(temporary_.c_str(), "r+b");
    if (!file_ || std::fseek(file_, 0, SEEK_END) != 0)
      refuse_partial(temporary_, concat("cannot be opened: ", system_error_text()));
    is_kept_ = true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(concat("forecast file '", path_.string(), "': ", what, ": ", system_error_text()),
                kFullDiskHint);
  }

  void discard() {
    if (finished_) return;
    if (file_) std::fclose(std::exchange(file_, nullptr));
    std::error_code ignored;
    if (!is_kept_) fs::remove(temporary_, ignored);
  }

  void set_step(const Parameter& parameter, GribMessage& message, int64_t lead_s) const {
    const int64_t end = lead_s / unit_.seconds;
    const int64_t begin = std::max<int64_t>(end - parameter.period_s / unit_.seconds, 0);
    message.set("stepUnits", std::string(unit_.name));
    message.set("stepRange",
                parameter.period_s > 0 ? concat(begin, "-", end) : std::to_string(end));
  }

  void set_values(const Parameter& parameter, GribMessage& message, std::span<const float> field,
                  const std::string& what) {
    values_.resize(field.size());
    bool has_missing = false;
    for (size_t i = 0; i < field.size(); ++i) {
      const auto value = static_cast<double>(field[i]);
      if (std::isinf(value))
        throw Error(concat("forecast file '", path_.string(), "': ", what, " is infinite in cell ",
                           i, ", which GRIB cannot hold"));
      has_missing = has_missing || std::isnan(value);
      values_[i] = std::isnan(value) ? kMissing : parameter.units.a * value + parameter.units.b;
    }
    message.set("bitmapPresent", int64_t{has_missing});
    if (has_missing) message.set("missingValue", kMissing);
    message.set("values", std::span<const double>(values_));
  }

  void append(const GribMessage& message, const std::string& what) {
    const std::span<const std::byte> bytes = message.bytes();
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail(what);
  }

  fs::path path_;
  ForecastContents contents_;
  fs::path temporary_;
  std::vector<Parameter> parameters_;
  StepUnit unit_{"h", 3600};
  std::FILE* file_ = nullptr;
  std::vector<double> values_;
  bool finished_ = false, is_kept_ = false;
};

}  // namespace

std::unique_ptr<ForecastFile> create_grib_forecast(const fs::path& path, ForecastContents contents,
                                                   const GribOptions& options) {
  return std::make_unique<GribForecast>(path, std::move(contents), options);
}

void check_grib(const ForecastContents& contents, const GribOptions& options) {
  const Parameters parameters(contents, options);
  for (const ForecastVariable& variable : contents.variables)
    parameters.make(variable);
}

std::string grib_forecast_identity(const fs::path& path) {
  const fs::path file = description_of(path);
  const auto json = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw DataError(concat("'", file.string(), "' is no JSON object"),
                    "remove it and the file beside it, or choose another folder");
  return json.value(kIdentityAttribute, "");
}

}  // namespace aifs::forecast
