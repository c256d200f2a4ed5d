// SPDX-License-Identifier: Apache-2.0
#include "data/sources/anemoi_metadata.h"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;
using test::AnemoiSpec;
using test::edit;

namespace {

AnemoiMetadata read(const std::shared_ptr<const zarr::MemoryStore>& store) {
  const zarr::Group group = open_anemoi_group(*store);
  return read_anemoi_metadata(store, group, zarr::Array(store, "data"));
}

// Copies what write_array() wrote under one name to another.
void rename_array(zarr::MemoryStore& store, const std::string& from, const std::string& to) {
  std::map<std::string, std::string> values = store.values();
  for (const auto& [key, value] : values) {
    if (!key.starts_with(from + "/")) continue;
    store.put(to + key.substr(from.size()), value);
    store.erase(key);
  }
}

void write_vector(zarr::MemoryStore& store, const std::string& name, const std::string& dtype,
                  const std::vector<double>& values) {
  test::write_array(store, name,
                    {.shape = {static_cast<int64_t>(values.size())},
                     .chunks = {static_cast<int64_t>(values.size())},
                     .dtype = dtype,
                     .fill_value = "0"},
                    [&](const auto& index) { return values[static_cast<size_t>(index[0])]; });
}

void require_refused(const std::string& named,
                     const std::function<void(zarr::MemoryStore&)>& damage) {
  INFO(named);
  const auto store = test::write_anemoi(AnemoiSpec{});
  damage(*store);
  REQUIRE_THROWS_AS(read(store), DataError);
  REQUIRE_THROWS_WITH(read(store), ContainsSubstring(named) && ContainsSubstring("memory"));
}

}  // namespace

TEST_CASE("a dataset says what was written", "[anemoi_metadata]") {
  const AnemoiSpec spec{.num_members = 2, .missing = {3}};
  const AnemoiMetadata metadata = read(test::write_anemoi(spec));
  const DatasetInfo& info = metadata.info;
  REQUIRE(info.name == "memory");
  REQUIRE(info.variables == spec.variables);
  REQUIRE(info.num_rows() == 6);
  REQUIRE(info.frequency_s == 21600);
  REQUIRE(info.missing_rows == std::vector<int64_t>{3});
  REQUIRE(info.ensemble_size == 2);
  REQUIRE(info.field_shape == std::vector<int64_t>{12});
  for (int64_t n = 0; n < 12; ++n) {
    REQUIRE(info.latitudes_deg[static_cast<size_t>(n)] == test::latitude_deg(n));
    REQUIRE(info.longitudes_deg[static_cast<size_t>(n)] == test::longitude_deg(n));
  }
  for (int64_t v = 0; v < info.num_variables(); ++v) {
    const auto i = static_cast<size_t>(v);
    REQUIRE(info.statistics.mean[i] == test::statistic_value(v, 0));
    REQUIRE(info.statistics.stdev[i] == test::statistic_value(v, 1));
    REQUIRE(info.statistics.minimum[i] == test::statistic_value(v, 2));
    REQUIRE(info.statistics.maximum[i] == test::statistic_value(v, 3));
    REQUIRE(info.tendencies.at(21600).stdev[i] == test::tendency_value(v, 1, 0));
    REQUIRE(info.tendencies.at(86400).mean[i] == test::tendency_value(v, 0, 1));
  }
}

TEST_CASE("constant variables are those named, described so, or without tendency",
          "[anemoi_metadata]") {
  const auto store = test::write_anemoi(AnemoiSpec{});  // 2t msl q_1000 q_500 tp
  REQUIRE(read(store).info.constant_fields.empty());
  edit(*store, ".zattrs", "{\"variables\"",
       R"({"constant_fields": ["tp", "z", "2t"], "variables_metadata": {
           "msl": {"constant_in_time": false}, "q_500": {"is_constant_in_time": true}},
           "variables")");
  REQUIRE(read(store).info.constant_fields == std::vector<std::string>{"2t", "q_500", "tp"});
  write_vector(*store, "statistics_tendencies_6h_mean", "<f8", {1, 0, 0, 1, 1});
  write_vector(*store, "statistics_tendencies_6h_stdev", "<f8", {1, 0, 1, 1, 1});
  REQUIRE(read(store).info.constant_fields == std::vector<std::string>{"2t", "msl", "q_500", "tp"});
  require_refused("constant_fields", [](zarr::MemoryStore& s) {
    edit(s, ".zattrs", "{\"variables\"", R"({"constant_fields": "lsm", "variables")");
  });
  require_refused("constant_fields", [](zarr::MemoryStore& s) {
    edit(s, ".zattrs", "{\"variables\"", R"({"constant_fields": [1], "variables")");
  });
}

TEST_CASE("tendencies are found by any spelling of their duration", "[anemoi_metadata]") {
  const auto tendencies =
      read(test::write_anemoi({.tendencies = {"108000s", "1d"}})).info.tendencies;
  REQUIRE(tendencies.size() == 2);
  REQUIRE((tendencies.contains(108000) && tendencies.contains(86400)));
  REQUIRE(read(test::write_anemoi({.tendencies = {}})).info.tendencies.empty());
  const auto store = test::write_anemoi({.tendencies = {"6h"}});
  store->put("statistics_tendencies_soon_stdev/.zarray", "{}");  // somebody else's
  for (const char* key : {"mean/.zarray", "mean/0"})
    store->erase(concat("statistics_tendencies_6h_", key));
  const Statistics partial = read(store).info.tendencies.at(21600);
  REQUIRE(partial.stdev[0] == test::tendency_value(0, 1, 0));
  REQUIRE(std::isnan(partial.mean[0]));
}

TEST_CASE("old names and forms are understood", "[anemoi_metadata]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  rename_array(*store, "latitudes", "latitude");
  rename_array(*store, "longitudes", "longitude");
  store->put(".zattrs", R"({"name_to_index": {"tp": 4, "2t": 0, "msl": 1, "q_500": 3, "q_1000": 2},
                            "frequency": 6, "format": "gridded", "unknown": NaN})");
  const DatasetInfo info = read(store).info;
  REQUIRE(info.variables == AnemoiSpec{}.variables);
  REQUIRE(info.frequency_s == 21600);
  REQUIRE(info.field_shape == std::vector<int64_t>{12});
  store->put(".zattrs", R"({"variables": ["a", "b", "c", "d", "e"]})");
  REQUIRE(read(store).info.frequency_s == 21600);  // from the dates
}

TEST_CASE("dates in any unit are the same dates", "[anemoi_metadata]") {
  for (const auto& [dtype, per_second] :
       std::vector<std::pair<std::string, double>>{{"<M8[ns]", 1e9}, {">M8[ms]", 1e3}}) {
    const auto store = test::write_anemoi(AnemoiSpec{});
    std::vector<double> counts;
    for (int i = 0; i < 6; ++i)
      counts.push_back((1577836800.0 + 21600.0 * i) * per_second);
    write_vector(*store, "dates", dtype, counts);
    REQUIRE(read(store).info.dates_s == read(test::write_anemoi(AnemoiSpec{})).info.dates_s);
  }
}

TEST_CASE("rows that were left out of the store are missing rows", "[anemoi_metadata]") {
  const auto store = test::write_anemoi({.num_dates = 5});
  std::vector<double> dates;
  for (const int i : {0, 1, 2, 5, 6})
    dates.push_back(1577836800.0 + 21600.0 * i);
  write_vector(*store, "dates", "<M8[s]", dates);
  const AnemoiMetadata metadata = read(store);
  REQUIRE(metadata.info.num_rows() == 7);
  REQUIRE(metadata.info.missing_rows == std::vector<int64_t>{3, 4});
  REQUIRE(metadata.stored_rows == std::vector<int64_t>{0, 1, 2, -1, -1, 3, 4});
}

TEST_CASE("what contradicts itself or is not there is named", "[anemoi_metadata]") {
  using Store = zarr::MemoryStore;
  require_refused("not a Zarr group", [](Store& s) { s.erase(".zgroup"); });
  require_refused("'data'", [](Store& s) { s.erase("data/.zarray"); });
  require_refused("'dates'", [](Store& s) { s.erase("dates/.zarray"); });
  require_refused("dates/0", [](Store& s) { s.erase("dates/0"); });
  require_refused("'longitudes'", [](Store& s) { s.erase("longitudes/.zarray"); });
  require_refused("'mean'", [](Store& s) { s.erase("mean/.zarray"); });
  require_refused("_build", [](Store& s) { s.put("_build/.zgroup", ""); });
  require_refused("_copy", [](Store& s) { s.put("_copy/.zarray", ""); });
  require_refused("layout", [](Store& s) { s.put(".zattrs", R"({"layout": "tabular"})"); });
  require_refused("format", [](Store& s) { s.put(".zattrs", R"({"format": "trajectories"})"); });
  require_refused("latitudes", [](Store& s) { write_vector(s, "latitudes", "<f8", {1, 2, 3}); });
  require_refused("mean", [](Store& s) { write_vector(s, "mean", "<f8", {1, 2, 3}); });
  require_refused("dates", [](Store& s) { write_vector(s, "dates", "<M8[s]", {0, 21600}); });
  require_refused("dates", [](Store& s) { write_vector(s, "dates", "<i8", {0, 1, 2, 3, 4, 5}); });
  require_refused("dates", [](Store& s) {
    write_vector(s, "dates", "<M8[ms]", {0, 1, 2, 3, 4, 5});
  });
}

TEST_CASE("absent chunks of statistics and places are their fill value, and told",
          "[anemoi_metadata]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  REQUIRE(read(store).warnings.empty());
  store->erase("stdev/0");
  store->erase("latitudes/1");
  const AnemoiMetadata metadata = read(store);
  REQUIRE(metadata.info.statistics.stdev == std::vector<double>(5, 0.0));
  REQUIRE(metadata.info.statistics.mean[1] == test::statistic_value(1, 0));
  REQUIRE(metadata.info.latitudes_deg[4] == test::latitude_deg(4));
  REQUIRE(metadata.info.latitudes_deg[5] == 0.0);
  REQUIRE(metadata.info.latitudes_deg[9] == 0.0);
  REQUIRE(metadata.info.latitudes_deg[10] == test::latitude_deg(10));
  REQUIRE_THAT(metadata.warnings.at(0),
               ContainsSubstring("'memory/latitudes/.zarray': 5 of 12 values have no chunk and are "
                                 "its fill_value 0"));
  REQUIRE_THAT(metadata.warnings.at(1), ContainsSubstring("'memory/stdev/.zarray': 5 of 5"));
  edit(*store, "stdev/.zarray", "\"fill_value\": 0", "\"fill_value\": null");
  REQUIRE_THROWS_WITH(read(store),
                      ContainsSubstring("fill_value in 'memory/stdev/.zarray' is null"));
}

TEST_CASE("means that cannot be are named where chunks of statistics are absent",
          "[anemoi_metadata]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  write_vector(*store, "minimum", "<f8", {200, 90000, 0, 0, 0});
  write_vector(*store, "maximum", "<f8", {320, 110000, 1, 1, 1});
  write_vector(*store, "mean", "<f8", {280, 100000, 0.5, 0.5, 0.5});
  REQUIRE(read(store).warnings.empty());
  store->erase("mean/0");
  REQUIRE(read(store).warnings.size() == 2);
  REQUIRE_THAT(read(store).warnings[1], ContainsSubstring("for 2t, msl: are chunks"));
}

TEST_CASE("lost dates are the cause, not the order that comes of them", "[anemoi_metadata]") {
  require_refused("4 of 6 have no chunk", [](zarr::MemoryStore& s) { s.erase("dates/0"); });
  require_refused("fill_value", [](zarr::MemoryStore& s) { s.erase("dates/1"); });
}

TEST_CASE("shapes that nothing stands behind end before they cost memory or time",
          "[anemoi_metadata]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  const auto claim = [&](const std::string& array, const char* from, const char* to) {
    edit(*store, array + "/.zarray", from, to);
  };
  claim("data", "[6, 5, 1, 12]", "[6, 5, 1, 4000000000]");
  claim("latitudes", "[12]", "[4000000000]");
  REQUIRE_THROWS_WITH(read(store), ContainsSubstring("memory/latitudes"));
  claim("data", "[6, 5, 1, 4000000000]", "[6, 5, 4000000000, 12]");
  REQUIRE_NOTHROW(read(test::write_anemoi(AnemoiSpec{})));
  REQUIRE_THROWS_AS(read(store), DataError);
  claim("data", "[6, 5, 4000000000, 12]", "[6, 5, 100000000000, 12]");
  claim("latitudes", "[4000000000]", "[12]");
  REQUIRE_THROWS_WITH(read(store), ContainsSubstring("memory/data/.zarray") &&
                                       ContainsSubstring("more than can be read"));
}

TEST_CASE("places that are on no globe are named", "[anemoi_metadata]") {
  std::vector<double> good(12, 45.0);
  for (const double bad : {91.0, -90.5, std::nan(""), HUGE_VAL}) {
    std::vector<double> latitudes = good;
    latitudes[7] = bad;
    require_refused("latitudes of cell 7",
                    [&](zarr::MemoryStore& s) { write_vector(s, "latitudes", "<f8", latitudes); });
  }
  std::vector<double> longitudes = good;
  longitudes[2] = 361;
  require_refused("longitudes of cell 2",
                  [&](zarr::MemoryStore& s) { write_vector(s, "longitudes", "<f4", longitudes); });
}

TEST_CASE("attributes that make no sense are named with their file", "[anemoi_metadata]") {
  struct Case {
    const char* from;
    const char* to;
    const char* named;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"\"2t\", ", "", "variables"},
           {"\"2t\"", "\"msl\"", "variables"},
           {"\"2t\"", "1", "variables"},
           {"\"2t\"", "\"\"", "variables"},
           {"\"variables\"", "\"other\"", "variables"},
           {"\"6h\"", "\"often\"", "frequency"},
           {"\"6h\"", "\"12h\"", "frequency"},
           {"\"6h\"", "[6]", "frequency"},
           {"\"6h\"", "6.5", "frequency"},
           {"\"missing_dates\": []", "\"missing_dates\": [\"soon\"]", "missing_dates"},
           {"\"missing_dates\": []", "\"missing_dates\": [3]", "missing_dates"},
           {"\"missing_dates\": []", "\"missing_dates\": \"2020\"", "missing_dates"},
           {"\"field_shape\": [12]", "\"field_shape\": [3, 5]", "field_shape"},
           {"\"field_shape\": [12]", "\"field_shape\": [-3, -4]", "field_shape"},
           {"\"field_shape\": [12]", "\"field_shape\": 12", "field_shape"},
           {"{\"variables\"", "{", ".zattrs"}}) {
    require_refused(c.named, [&](zarr::MemoryStore& s) { edit(s, ".zattrs", c.from, c.to); });
  }
}

TEST_CASE("data of another rank, or without any row, are no dataset", "[anemoi_metadata]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  edit(*store, "data/.zarray", "[6, 5, 1, 12]", "[0, 5, 1, 12]");
  REQUIRE_THROWS_WITH(read(store), ContainsSubstring("data/.zarray") && ContainsSubstring("shape"));
  test::write_array(*store, "data", {.shape = {6, 60}, .chunks = {6, 60}},
                    [](const auto&) { return 0.0; });
  REQUIRE_THROWS_WITH(read(store), ContainsSubstring("data/.zarray") && ContainsSubstring("shape"));
}

TEST_CASE("a name is a name, whatever it looks like", "[anemoi_metadata]") {
  REQUIRE(read(test::write_anemoi({.variables = {"../../etc/passwd", "a/b", "\\u00e9", " "}}))
              .info.variables[1] == "a/b");
}

TEST_CASE("statistics may be NaN or zero: the normaliser says no", "[anemoi_metadata]") {
  const auto store = test::write_anemoi(AnemoiSpec{});
  write_vector(*store, "stdev", "<f8", {0, std::nan(""), -1, HUGE_VAL, 1});
  REQUIRE(read(store).info.statistics.stdev[0] == 0.0);
}
