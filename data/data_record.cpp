// SPDX-License-Identifier: Apache-2.0
#include "data/data_record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

namespace {

using config::Json;

constexpr std::array<std::pair<Role, const char*>, 3> kRoles{{{Role::kForcing, "forcing"},
                                                              {Role::kPrognostic, "prognostic"},
                                                              {Role::kDiagnostic, "diagnostic"}}};

const char* role_name(Role role) {
  for (const auto& [value, name] : kRoles) {
    if (value == role) return name;
  }
  return "unknown";
}

// JSON has no NaN and no infinity, which statistics of unused variables may be.
Json number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

// One object of a record, read with errors that name file and key.
class Reader {
 public:
  Reader(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) throw DataError(concat(place_, " is no object"));
  }

  const Json& at(const char* key) const {
    if (!json_.contains(key)) throw DataError(concat(place_, " has no '", key, "'"));
    return json_.at(key);
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) throw wrong(key, "a text");
    return value.get<std::string>();
  }
  int64_t integer(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number_integer()) throw wrong(key, "an integer");
    return value.get<int64_t>();
  }
  double real(const char* key) const { return to_real(at(key), key); }
  double to_real(const Json& value, const char* key) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (value.is_number()) return value.get<double>();
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    if (text == "inf") return kInfinity;
    if (text == "-inf") return -kInfinity;
    throw wrong(key, "a number");
  }
  DataError wrong(const char* key, const char* wanted) const {
    return DataError(concat(place_, ": '", key, "' is not ", wanted));
  }

 private:
  const Json& json_;
  std::string place_;
};

// A method and its own options only, so that options of others can come and go.
std::string remap_text(const Json& rule) {
  for (const auto& [method, name] : EnumNames<RemapMethod>::table) {
    if (rule.value("method", Json()) != name) continue;
    Json own{{"method", name}};
    for (const std::string& key : options_of(method))
      own[key] = rule.value(key, Json());
    return own.dump();
  }
  return rule.dump();
}

std::string remap_text(const RemapRule& rule) {
  RemapRule copy = rule;
  copy.exponent = rule.effective_exponent();
  return remap_text(config::write_object(config::fields_of(copy)));
}

// Returns the text of a record that any version has written.
std::string saved_remap_text(const std::string& text) {
  const Json rule = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return rule.is_object() ? remap_text(rule) : text;
}

// Equal bits, NaN included.
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)) || a == b;
}

// "'t': was 3 and is 4; 'q': ..." of a few, with the number of the others.
void add_limited(std::vector<std::string>& out, std::vector<std::string> found) {
  constexpr size_t kShown = 8;
  const size_t more = found.size() > kShown ? found.size() - kShown : 0;
  if (more > 0) found.resize(kShown);
  for (std::string& text : found)
    out.push_back(std::move(text));
  if (more > 0) out.push_back(concat("and ", more, " more of the kind"));
}

std::string quoted(const std::string& text) {
  return text.empty() ? "nothing" : text;
}

}  // namespace

Statistics DataRecord::statistics() const {
  Statistics all;
  for (const VariableRecord& v : variables) {
    all.mean.push_back(v.mean);
    all.stdev.push_back(v.stdev);
    all.minimum.push_back(v.minimum);
    all.maximum.push_back(v.maximum);
  }
  return all;
}

PeriodRecord period_of(const DatasetInfo& info) {
  return {.first_s = info.dates_s.front(),
          .last_s = info.dates_s.back(),
          .frequency_s = info.frequency_s,
          .num_rows = info.num_rows(),
          .num_missing = static_cast<int64_t>(info.missing_rows.size())};
}

std::vector<VariableRecord> variable_records(const VariableTable& variables,
                                             const Statistics& statistics,
                                             const DataTables& tables) {
  std::vector<VariableRecord> records;
  for (size_t v = 0; v < variables.names().size(); ++v) {
    const auto column = static_cast<int64_t>(v);
    VariableRecord& record = records.emplace_back(
        VariableRecord{.name = variables.names()[v],
                       .role = variables.role(column),
                       .mean = statistics.mean[v],
                       .stdev = statistics.stdev[v],
                       .minimum = statistics.minimum[v],
                       .maximum = statistics.maximum[v],
                       .mul = tables.normaliser.mul[v],
                       .add = tables.normaliser.add[v],
                       .imputer = tables.imputer.describe(column, variables.names()),
                       .remapper = ""});
    if (const RemapRule* rule = tables.remapper.rule_of(column))
      record.remapper = remap_text(*rule);
  }
  return records;
}

namespace {

Json to_json(const PeriodRecord& period) {
  return {{"first_date", format_date(period.first_s)},
          {"last_date", format_date(period.last_s)},
          {"frequency_s", period.frequency_s},
          {"num_dates", period.num_rows},
          {"num_missing", period.num_missing}};
}

PeriodRecord read_period(const Json& json, const std::string& place) {
  const Reader reader(json, place);
  const auto date = [&](const char* key) {
    try {
      return parse_date(reader.text(key));
    } catch (const ConfigError&) {
      throw reader.wrong(key, "a date");
    }
  };
  return {.first_s = date("first_date"),
          .last_s = date("last_date"),
          .frequency_s = reader.integer("frequency_s"),
          .num_rows = reader.integer("num_dates"),
          .num_missing = reader.integer("num_missing")};
}

}  // namespace

Json to_json(const DataRecord& record) {
  Json json{{"dataset", record.dataset},
            {"num_cells", record.num_nodes},
            {"timestep_s", record.timestep_s},
            {"training", to_json(record.training)},
            {"validation", to_json(record.validation)}};
  Json& list = json["variables"] = Json::array();
  for (size_t v = 0; v < record.variables.size(); ++v) {
    const VariableRecord& variable = record.variables[v];
    Json entry{{"name", variable.name},
               {"role", role_name(variable.role)},
               {"mean", number(variable.mean)},
               {"stdev", number(variable.stdev)},
               {"minimum", number(variable.minimum)},
               {"maximum", number(variable.maximum)},
               {"mul", number(static_cast<double>(variable.mul))},
               {"add", number(static_cast<double>(variable.add))}};
    if (!variable.imputer.empty()) entry["imputer"] = variable.imputer;
    if (!variable.remapper.empty()) entry["remapper"] = variable.remapper;
    for (const auto& [delta_s, t] : record.tendencies) {
      entry["tendencies"][std::to_string(delta_s)] = {number(t.mean[v]), number(t.stdev[v]),
                                                      number(t.minimum[v]), number(t.maximum[v])};
    }
    list.push_back(std::move(entry));
  }
  return json;
}

namespace {

// Adds the tendencies of one variable; each variable has the same time differences.
void read_tendencies(const Json& json, const Reader& reader, DataRecord& record) {
  if (!json.is_object()) throw reader.wrong("tendencies", "an object");
  for (const auto& [key, values] : json.items()) {
    const bool is_number =
        !key.empty() && key.size() < 18 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || !values.is_array() || values.size() != 4)
      throw reader.wrong("tendencies", "four numbers by a number of seconds");
    Statistics& t = record.tendencies[std::stoll(key)];
    t.mean.push_back(reader.to_real(values[0], "tendencies"));
    t.stdev.push_back(reader.to_real(values[1], "tendencies"));
    t.minimum.push_back(reader.to_real(values[2], "tendencies"));
    t.maximum.push_back(reader.to_real(values[3], "tendencies"));
  }
}

}  // namespace

DataRecord data_record_from_json(const Json& json, const std::string& file) {
  const Reader reader(json, concat("'", file, "': 'data'"));
  DataRecord record;
  record.dataset = reader.text("dataset");
  record.num_nodes = reader.integer("num_cells");
  record.training = read_period(reader.at("training"), concat("'", file, "': 'data.training'"));
  record.validation =
      read_period(reader.at("validation"), concat("'", file, "': 'data.validation'"));
  record.timestep_s = reader.integer("timestep_s");
  const Json& list = reader.at("variables");
  if (!list.is_array()) throw reader.wrong("variables", "a list");
  for (size_t v = 0; v < list.size(); ++v) {
    const Reader entry(list[v], concat("'", file, "': 'data.variables.", v, "'"));
    VariableRecord& variable = record.variables.emplace_back();
    variable.name = entry.text("name");
    const std::string role = entry.text("role");
    const auto* found = std::find_if(kRoles.begin(), kRoles.end(),
                                     [&](const auto& known) { return role == known.second; });
    if (found == kRoles.end()) throw entry.wrong("role", "forcing, prognostic or diagnostic");
    variable.role = found->first;
    variable.mean = entry.real("mean");
    variable.stdev = entry.real("stdev");
    variable.minimum = entry.real("minimum");
    variable.maximum = entry.real("maximum");
    variable.mul = static_cast<float>(entry.real("mul"));
    variable.add = static_cast<float>(entry.real("add"));
    if (list[v].contains("imputer")) variable.imputer = entry.text("imputer");
    if (list[v].contains("remapper")) variable.remapper = saved_remap_text(entry.text("remapper"));
    if (list[v].contains("tendencies")) read_tendencies(list[v]["tendencies"], entry, record);
  }
  for (const auto& [delta_s, t] : record.tendencies) {
    if (t.mean.size() != record.variables.size())
      throw reader.wrong("variables", "complete: some have no tendencies");
  }
  return record;
}

std::vector<std::string> variable_differences(const DataRecord& saved,
                                              const std::vector<std::string>& names,
                                              const VariableTable& table) {
  std::vector<std::string> found;
  const auto is_saved = [&](const std::string& name) {
    return std::any_of(saved.variables.begin(), saved.variables.end(),
                       [&](const VariableRecord& v) { return v.name == name; });
  };
  for (const VariableRecord& variable : saved.variables) {
    if (std::count(names.begin(), names.end(), variable.name) == 0)
      found.push_back(concat("variable '", variable.name, "' is missing"));
  }
  for (const std::string& name : names) {
    if (!is_saved(name)) found.push_back(concat("variable '", name, "' was not there"));
  }
  if (found.empty()) {
    for (size_t v = 0; v < names.size(); ++v) {
      const VariableRecord& before = saved.variables[v];
      const Role role = table.role(static_cast<int64_t>(v));
      if (before.name != names[v]) {
        found.push_back(concat("variable ", v, " was '", before.name, "' and is '", names[v], "'"));
      } else if (before.role != role) {
        found.push_back(
            concat("'", names[v], "' was ", role_name(before.role), " and is ", role_name(role)));
      }
    }
  }
  std::vector<std::string> out;
  add_limited(out, std::move(found));
  return out;
}

std::vector<std::string> table_differences(const DataRecord& saved, const DataRecord& now) {
  std::vector<std::string> found;
  for (size_t v = 0; v < saved.variables.size(); ++v) {
    const VariableRecord &a = saved.variables[v], &b = now.variables[v];
    if (!same(a.mul, b.mul) || !same(a.add, b.add)) {
      found.push_back(concat("'", a.name, "' was normalised as x * ", a.mul, " + ", a.add,
                             " and is as x * ", b.mul, " + ", b.add, " (mean ", a.mean, ", stdev ",
                             a.stdev, "; now ", b.mean, ", ", b.stdev, ")"));
    }
    if (a.imputer != b.imputer) {
      found.push_back(concat("NaN of '", a.name, "' were filled with ", quoted(a.imputer),
                             " and are with ", quoted(b.imputer)));
    }
    if (a.remapper != b.remapper) {
      found.push_back(concat("'", a.name, "' was mapped by ", quoted(a.remapper), " and is by ",
                             quoted(b.remapper)));
    }
  }
  std::vector<std::string> out;
  add_limited(out, std::move(found));
  if (saved.timestep_s != now.timestep_s) {
    out.push_back(concat("data.timestep was ", format_duration(saved.timestep_s), " and is ",
                         format_duration(now.timestep_s)));
  }
  return out;
}

std::vector<std::string> statistics_differences(const DataRecord& saved, const DataRecord& now) {
  std::vector<std::string> found;
  for (size_t v = 0; v < saved.variables.size(); ++v) {
    const VariableRecord &a = saved.variables[v], &b = now.variables[v];
    const auto note = [&](const char* what, double before, double after) {
      if (!same(before, after))
        found.push_back(concat("the ", what, " of '", a.name, "' was ", before, " and is ", after));
    };
    note("mean", a.mean, b.mean);
    note("stdev", a.stdev, b.stdev);
    note("minimum", a.minimum, b.minimum);
    note("maximum", a.maximum, b.maximum);
  }
  for (const auto& [delta_s, before] : saved.tendencies) {
    const auto other = now.tendencies.find(delta_s);
    const std::string name = concat("tendency over ", format_duration(delta_s));
    if (other == now.tendencies.end()) {
      found.push_back(concat("there are no statistics of the ", name));
      continue;
    }
    for (size_t v = 0; v < saved.variables.size(); ++v) {
      const auto note = [&](const char* what, double a, double b) {
        if (!same(a, b))
          found.push_back(concat("the ", what, " of the ", name, " of '", saved.variables[v].name,
                                 "' was ", a, " and is ", b));
      };
      note("mean", before.mean[v], other->second.mean[v]);
      note("stdev", before.stdev[v], other->second.stdev[v]);
    }
  }
  std::vector<std::string> out;
  add_limited(out, std::move(found));
  return out;
}

std::vector<std::string> period_differences(const DataRecord& saved, const DataRecord& now) {
  const auto text = [](const PeriodRecord& p) {
    return concat(p.num_rows, " dates, ", format_date(p.first_s), " to ", format_date(p.last_s),
                  ", every ", format_duration(p.frequency_s),
                  p.num_missing > 0 ? concat(", ", p.num_missing, " missing") : "");
  };
  std::vector<std::string> found;
  const auto note = [&](const char* what, const PeriodRecord& a, const PeriodRecord& b) {
    if (text(a) != text(b))
      found.push_back(concat(what, " data were ", text(a), "; they are ", text(b)));
  };
  note("training", saved.training, now.training);
  note("validation", saved.validation, now.validation);
  return found;
}

namespace {

void add_column(ColumnNames& columns, const std::string& name, Role role) {
  if (role != Role::kDiagnostic) columns.inputs.push_back(name);
  if (role != Role::kForcing)
    columns.outputs.push_back(role == Role::kDiagnostic ? name + " (diagnostic)" : name);
}

}  // namespace

ColumnNames column_names(const DataRecord& record) {
  ColumnNames columns;
  for (const VariableRecord& v : record.variables)
    add_column(columns, v.name, v.role);
  return columns;
}

ColumnNames column_names(const VariableTable& variables) {
  ColumnNames columns;
  for (int64_t v = 0; v < variables.num_variables(); ++v)
    add_column(columns, variables.names()[static_cast<size_t>(v)], variables.role(v));
  return columns;
}

ColumnChange compare_columns(const std::vector<std::string>& saved,
                             const std::vector<std::string>& now) {
  ColumnChange change;
  const auto add_missing = [](const std::vector<std::string>& from,
                              const std::vector<std::string>& in, std::vector<std::string>& out) {
    for (const std::string& name : from) {
      if (std::count(in.begin(), in.end(), name) == 0) out.push_back(concat("'", name, "'"));
    }
  };
  add_missing(now, saved, change.added);
  add_missing(saved, now, change.removed);
  change.same_length = saved.size() == now.size();
  for (size_t i = 0; i < std::min(saved.size(), now.size()) && change.same_length; ++i) {
    if (saved[i] != now[i])
      change.moved.push_back(concat("column ", i, " was '", saved[i], "' and is '", now[i], "'"));
  }
  return change;
}

std::string ColumnChange::text() const {
  std::string text;
  const auto add = [&](const std::vector<std::string>& list, const char* one, const char* many) {
    if (list.empty()) return;
    std::vector<std::string> names;
    add_limited(names, list);
    for (size_t i = 0; i < names.size(); ++i)
      text += concat(i > 0 ? ", " : text.empty() ? "" : "; ", names[i]);
    text += list.size() > 1 ? many : one;
  };
  add(added, " is new", " are new");
  add(removed, " is left out", " are left out");
  if (text.empty()) add(moved, "", "");
  return text;
}

std::pair<DataRecord, DataRecord> shared_variables(const DataRecord& saved, const DataRecord& now) {
  const auto place_in = [](const DataRecord& record, const std::string& name) {
    const auto found =
        std::find_if(record.variables.begin(), record.variables.end(),
                     [&](const VariableRecord& variable) { return variable.name == name; });
    return found == record.variables.end() ? record.variables.size()
                                           : static_cast<size_t>(found - record.variables.begin());
  };
  const auto cut = [](const DataRecord& record, const std::vector<size_t>& places) {
    DataRecord part = record;
    part.variables.clear();
    for (const size_t place : places)
      part.variables.push_back(record.variables[place]);
    for (auto& [delta_s, statistics] : part.tendencies) {
      const Statistics whole = statistics;
      statistics = {};
      for (const size_t place : places) {
        statistics.mean.push_back(whole.mean[place]);
        statistics.stdev.push_back(whole.stdev[place]);
        statistics.minimum.push_back(whole.minimum[place]);
        statistics.maximum.push_back(whole.maximum[place]);
      }
    }
    return part;
  };
  std::vector<size_t> before, after;
  for (size_t v = 0; v < now.variables.size(); ++v) {
    const size_t place = place_in(saved, now.variables[v].name);
    if (place == saved.variables.size()) continue;
    before.push_back(place);
    after.push_back(v);
  }
  return {cut(saved, before), cut(now, after)};
}

}  // namespace aifs::data
