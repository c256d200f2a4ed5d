// SPDX-License-Identifier: Apache-2.0
#include "data/data_record.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

const std::vector<std::string> kNames{"t", "q", "z", "f"};

DataRecord record_of(const std::vector<std::string>& names = kNames,
                     const RoleOptions& roles = {.forcing = {"f"}, .diagnostic = {"z"}},
                     double stdev_of_t = 0.1) {
  Statistics statistics{{280.123456789, 1e-7, 0.0, 0.1},
                        {stdev_of_t, 2.0, 1.0, 1.0},
                        {std::nan(""), -1.0, -2.0, 0.0},
                        {std::numeric_limits<double>::infinity(), 1.0, 2.0, 1.0}};
  const VariableTable table(names, roles);
  const Statistics before = statistics;
  const Imputer imputer(names, statistics,
                        {{.variables = {"t"}, .method = ImputeMethod::kMean},
                         {.variables = {"q"}, .method = ImputeMethod::kCopy, .from = "t"}});
  const Normaliser normaliser = Normaliser::create(names, statistics, {.none = {"f"}});
  const Remapper remapper(names, {{.variables = {"z"}, .method = RemapMethod::kLog1p}});
  DataRecord record;
  record.variables = variable_records(table, before, {normaliser, imputer, remapper});
  record.tendencies[21600] = before;
  record.timestep_s = 21600;
  record.dataset = "some.zarr";
  record.num_nodes = 3;
  record.training = {.first_s = parse_date("2020-01-01"),
                     .last_s = parse_date("2020-02-01"),
                     .frequency_s = 21600,
                     .num_rows = 125,
                     .num_missing = 1};
  record.validation = record.training;
  return record;
}

config::Json there_and_back(const DataRecord& record) {
  return to_json(data_record_from_json(config::Json::parse(to_json(record).dump()), "m.json"));
}

}  // namespace

TEST_CASE("a record survives the way to JSON and back bit for bit", "[data_record]") {
  const DataRecord record = record_of();
  REQUIRE(there_and_back(record) == to_json(record));
  const DataRecord read =
      data_record_from_json(config::Json::parse(to_json(record).dump()), "m.json");
  REQUIRE(read.variables[0].mul == record.variables[0].mul);
  REQUIRE(read.variables[0].mean == 280.123456789);
  REQUIRE(std::isnan(read.variables[0].minimum));
  REQUIRE(std::isinf(read.variables[0].maximum));
  REQUIRE(read.variables[2].role == Role::kDiagnostic);
  REQUIRE(read.tendencies.at(21600).stdev == record.tendencies.at(21600).stdev);
  REQUIRE(table_differences(record, read).empty());
  REQUIRE(statistics_differences(record, read).empty());
  REQUIRE(period_differences(record, read).empty());
  REQUIRE(variable_differences(read, kNames,
                               VariableTable(kNames, {.forcing = {"f"}, .diagnostic = {"z"}}))
              .empty());
}

TEST_CASE("each difference in names, order and roles is named", "[data_record]") {
  const DataRecord saved = record_of();
  const RoleOptions roles{.forcing = {"f"}, .diagnostic = {"z"}};
  const auto of = [&](const std::vector<std::string>& names, const RoleOptions& r) {
    std::string all;
    for (const std::string& text : variable_differences(saved, names, VariableTable(names, r)))
      all += text + "\n";
    return all;
  };
  REQUIRE(of({"q", "t", "z", "f"}, roles) ==
          "variable 0 was 't' and is 'q'\nvariable 1 was 'q' and is 't'\n");
  REQUIRE(of(kNames, {.forcing = {"f"}, .diagnostic = {}}) ==
          "'z' was diagnostic and is prognostic\n");
  REQUIRE(of({"t", "q", "z", "f", "new"}, roles) == "variable 'new' was not there\n");
  REQUIRE(of({"t", "z", "f"}, roles) == "variable 'q' is missing\n");
}

TEST_CASE("other statistics are differences of tables where tables hold them", "[data_record]") {
  const DataRecord saved = record_of(), now = record_of(kNames, {{"f"}, {"z"}}, 0.2);
  const std::vector<std::string> tables = table_differences(saved, now);
  REQUIRE(tables.size() == 1);
  REQUIRE_THAT(tables[0], ContainsSubstring("'t' was normalised as x * 10 ") &&
                              ContainsSubstring("is as x * 5 ") && ContainsSubstring("stdev 0.1"));
  const std::vector<std::string> statistics = statistics_differences(saved, now);
  REQUIRE(statistics ==
          std::vector<std::string>{"the stdev of 't' was 0.1 and is 0.2",
                                   "the stdev of the tendency over 6h of 't' was 0.1 and is 0.2"});
  DataRecord without = saved;
  without.tendencies.clear();
  REQUIRE(statistics_differences(saved, without) ==
          std::vector<std::string>{"there are no statistics of the tendency over 6h"});
  REQUIRE(statistics_differences(without, saved).empty());  // nothing was made of them
  DataRecord filled = saved;
  filled.variables[1].imputer = "";
  filled.timestep_s = 3600;
  REQUIRE(table_differences(saved, filled) ==
          std::vector<std::string>{"NaN of 'q' were filled with copy of t and are with nothing",
                                   "data.timestep was 6h and is 1h"});
}

TEST_CASE("inputs and outputs are lists of their own, by name and kind", "[data_record]") {
  const ColumnNames columns = column_names(record_of());
  REQUIRE(columns.inputs == std::vector<std::string>{"t", "q", "f"});
  REQUIRE(columns.outputs == std::vector<std::string>{"t", "q", "z (diagnostic)"});
  const VariableTable same(kNames, {.forcing = {"f"}, .diagnostic = {"z"}});
  REQUIRE(column_names(same).outputs == columns.outputs);
  const auto text = [&](const std::vector<std::string>& now) {
    const ColumnChange change = compare_columns(columns.inputs, now);
    REQUIRE(change.is_same() == (now == columns.inputs));
    REQUIRE(change.same_length == (now.size() == 3));
    return change.text();
  };
  REQUIRE(text({"t", "q", "f"}).empty());
  REQUIRE(text({"t", "q", "f", "g"}) == "'g' is new");
  REQUIRE(text({"t", "g", "h"}) == "'g', 'h' are new; 'q', 'f' are left out");
  REQUIRE(text({"q", "t", "f"}) == "column 0 was 't' and is 'q', column 1 was 'q' and is 't'");
  // One that becomes diagnostic is another output: nothing is added to its input any more.
  REQUIRE_FALSE(compare_columns({"t"}, {"t (diagnostic)"}).is_same());
}

TEST_CASE("records are cut to what both have, tables and tendencies with them", "[data_record]") {
  const DataRecord saved = record_of();
  const DataRecord now = record_of({"z", "f", "t", "q"}, {{"f"}, {}}, 0.2);
  DataRecord renamed = now;
  renamed.variables[0].name = "new";
  const auto [a, b] = shared_variables(saved, renamed);
  REQUIRE(a.variables.size() == 3);
  for (size_t v = 0; v < 3; ++v)
    REQUIRE(a.variables[v].name == b.variables[v].name);
  REQUIRE(a.variables[1].name == "t");
  REQUIRE(a.tendencies.at(21600).stdev.size() == 3);
  REQUIRE(a.tendencies.at(21600).stdev[1] == saved.tendencies.at(21600).stdev[0]);
  REQUIRE(b.tendencies.at(21600).stdev[1] == now.tendencies.at(21600).stdev[2]);
  for (VariableRecord& variable : renamed.variables)
    variable.name += "2";
  const auto [c, d] = shared_variables(saved, renamed);
  REQUIRE((c.variables.empty() && d.variables.empty()));
  REQUIRE((table_differences(c, d).empty() && statistics_differences(c, d).empty()));
}

TEST_CASE("more dates change the course of training", "[data_record]") {
  const DataRecord saved = record_of();
  DataRecord now = saved;
  now.validation.num_rows = 200;
  const std::vector<std::string> found = period_differences(saved, now);
  REQUIRE(found.size() == 1);
  REQUIRE_THAT(found[0], ContainsSubstring("validation data were 125 dates") &&
                             ContainsSubstring("they are 200 dates"));
}

TEST_CASE("what is no record is told by file and key", "[data_record]") {
  const config::Json good = to_json(record_of());
  const auto fault_of = [](const config::Json& json) -> std::string {
    try {
      data_record_from_json(json, "m.json");
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  };
  REQUIRE(fault_of(good) == "none");
  const std::vector<config::Json> others{
      nullptr, true, "text", -1, 1e300, config::Json::array(), config::Json::object()};
  for (const auto& [key, value] : good.items()) {
    config::Json without = good;
    without.erase(key);
    REQUIRE_THAT(fault_of(without), ContainsSubstring("m.json") && ContainsSubstring(key));
    for (const config::Json& other : others) {
      config::Json wrong = good;
      wrong[key] = other;
      INFO(key << " = " << other);
      const std::string fault = fault_of(wrong);
      if (fault == "none") continue;  // a number for a number, a text for a text, no variables
      REQUIRE_THAT(fault, ContainsSubstring("m.json") && ContainsSubstring(key));
    }
  }
  for (const auto& [key, value] : good["variables"][0].items()) {
    config::Json wrong = good;
    wrong["variables"][0][key] = config::Json::array({1});
    REQUIRE_THAT(fault_of(wrong), ContainsSubstring("m.json") &&
                                      ContainsSubstring("data.variables.0") &&
                                      ContainsSubstring(key));
  }
}

TEST_CASE("a map is recorded by its own options, whatever wrote it", "[data_record]") {
  const DataRecord now = record_of();
  REQUIRE(now.variables[2].remapper == R"({"method":"log1p"})");
  config::Json old = to_json(now);
  old["variables"][2]["remapper"] =
      R"({"variables":[],"method":"log1p","exponent":0.5,"rho":2.0,"lower":0.0,"upper":1.0})";
  REQUIRE(table_differences(data_record_from_json(old, "m.json"), now).empty());
  old["variables"][2]["remapper"] = R"({"variables":[],"method":"power","exponent":0.5})";
  REQUIRE_THAT(table_differences(data_record_from_json(old, "m.json"), now).at(0),
               ContainsSubstring("log1p") && ContainsSubstring("0.5"));
  old["variables"][2]["remapper"] = "no JSON";
  REQUIRE(table_differences(data_record_from_json(old, "m.json"), now).size() == 1);
}
