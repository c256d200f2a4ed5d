// SPDX-License-Identifier: Apache-2.0
#include "data/combine/dataset_modifiers.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/open_test_dataset.h"

using namespace aifs;
using namespace aifs::data;
using test::position_value;

namespace {

// Fields of three rows and four columns, two members.
const test::AnemoiSpec kSpec{.num_dates = 5, .num_members = 2, .num_cells = 12};

const test::Stores& stores() {
  static const test::Stores kStores = [] {
    auto store = test::write_anemoi(kSpec);
    test::edit(*store, ".zattrs", "\"field_shape\": [12]", "\"field_shape\": [3, 4]");
    return test::Stores{{"a", store}};
  }();
  return kStores;
}

DatasetPtr open(const std::string& options) {
  return test::open(stores(), R"({"dataset": "a")" + options + "}");
}

// Cells of the store that are left, by their value at the first row.
std::vector<int64_t> cells_left(const DatasetPtr& dataset) {
  std::vector<int64_t> cells;
  for (int64_t n = 0; n < dataset->info().num_nodes(); ++n)
    cells.push_back(static_cast<int64_t>(test::value_at(*dataset, 0, 0, 0, n)));
  return cells;
}

}  // namespace

TEST_CASE("options apply in Anemoi's order, however they are written", "[dataset_modifiers]") {
  const DatasetPtr dataset =
      open(R"(, "rescale": {"b": [2, 1]}, "rename": {"2t": "b"}, "reorder": "sort",
              "drop": ["tp"], "select": ["tp", "msl", "2t"])");
  REQUIRE(dataset->info().variables == std::vector<std::string>{"b", "msl"});
  REQUIRE(test::value_at(*dataset, 2, 0, 1, 3) == 2 * position_value(kSpec, 2, 0, 1, 3) + 1);
  REQUIRE(test::value_at(*dataset, 2, 1, 1, 3) == position_value(kSpec, 2, 1, 1, 3));
}

TEST_CASE("trimming comes before thinning, and thinning before areas", "[dataset_modifiers]") {
  REQUIRE(cells_left(open(R"(, "trim_edge": [1, 0, 0, 2])")) == std::vector<int64_t>{4, 5, 8, 9});
  REQUIRE(cells_left(open(R"(, "trim_edge": 1)")) == std::vector<int64_t>{5, 6});
  REQUIRE(cells_left(open(R"(, "thinning": 2)")) == std::vector<int64_t>{0, 2, 8, 10});
  REQUIRE(open(R"(, "thinning": 2)")->info().field_shape == std::vector<int64_t>{2, 2});
  REQUIRE(cells_left(open(R"(, "thinning": 2, "trim_edge": [0, 0, 1, 0])")) ==
          std::vector<int64_t>{1, 3, 9, 11});
  REQUIRE(cells_left(open(R"(, "thinning": 2, "area": [89.999, 0, 89.99, 1])")) ==
          std::vector<int64_t>{2, 8, 10});
  REQUIRE_THROWS_WITH(
      test::open(stores(), R"({"dataset": {"dataset": "a", "area": [90, 0, 89.99, 1]},
                               "thinning": 2})"),
      ContainsSubstring("data.dataset.thinning") && ContainsSubstring("no rows and columns"));
}

TEST_CASE("members count from one or from zero", "[dataset_modifiers]") {
  REQUIRE(test::value_at(*open(R"(, "number": 2)"), 1, 0, 0, 0) ==
          position_value(kSpec, 1, 0, 1, 0));
  REQUIRE(test::value_at(*open(R"(, "member": 0)"), 1, 0, 0, 0) ==
          position_value(kSpec, 1, 0, 0, 0));
  REQUIRE(open(R"(, "numbers": [2, 1, 2])")->info().ensemble_size == 2);
  REQUIRE_THROWS_WITH(open(R"(, "number": 3)"), ContainsSubstring("data.dataset.number"));
  REQUIRE_THROWS_WITH(open(R"(, "member": -1)"), ContainsSubstring("from 0 to 1"));
}

TEST_CASE("dates can be declared missing by date and by number", "[dataset_modifiers]") {
  REQUIRE(open(R"(, "set_missing_dates": ["2020-01-01T06:00:00", 3])")->info().missing_rows ==
          std::vector<int64_t>{1, 3});
  REQUIRE_THROWS_WITH(open(R"(, "set_missing_dates": ["2031-01-01T06:00:00"])"),
                      ContainsSubstring("none of the dates"));
  REQUIRE_THROWS_WITH(open(R"(, "set_missing_dates": [5])"), ContainsSubstring("below 5"));
}

TEST_CASE("missing dates are filled before others are chosen", "[dataset_modifiers]") {
  test::AnemoiSpec spec{.num_dates = 6, .missing = {2}};
  const test::Stores gaps{{"a", test::write_anemoi(spec)}};
  const DatasetPtr dataset = test::open(
      gaps, R"({"dataset": "a", "fill_missing_dates": "closest", "end": "2020-01-01T12:00:00"})");
  REQUIRE(dataset->info().num_rows() == 3);
  REQUIRE(test::value_at(*dataset, 2, 0, 0, 0) == position_value(spec, 3, 0, 0, 0));
}

TEST_CASE("statistics are taken from another dataset, and tendencies with them",
          "[dataset_modifiers]") {
  test::Stores two = stores();
  two["b"] = test::write_anemoi({.variables = {"msl", "2t"}});
  const auto info = [&](const std::string& options) {
    return test::open(two, R"({"dataset": "a", "select": ["2t"], )" + options + "}")->info();
  };
  const DatasetInfo both = info(R"("statistics": "b")");
  REQUIRE(both.statistics.mean[0] == test::statistic_value(1, 0));
  REQUIRE(both.tendencies.at(21600).mean[0] == test::tendency_value(1, 0, 0));
  const DatasetInfo one = info(R"("statistics_tendencies": "b")");
  REQUIRE(one.statistics.mean[0] == test::statistic_value(0, 0));
  REQUIRE(one.tendencies.at(21600).mean[0] == test::tendency_value(1, 0, 0));
  REQUIRE_THROWS_WITH(test::open(two, R"({"dataset": "a", "statistics": "b"})"),
                      ContainsSubstring("data.dataset.statistics"));
}

TEST_CASE("options that do not fit are refused with their place", "[dataset_modifiers]") {
  struct Case {
    const char *options, *path, *words;
  };
  for (const Case& c :
       {Case{R"("reorder": ["2t"])", "reorder", "1 of the 5 variables"},
        Case{R"("reorder": {"2t": "first"})", "reorder.2t", "number"},
        Case{R"("rename": {"nope": "x"})", "rename.nope", "no variable 'nope'"},
        Case{R"("rename": {"2t": "msl"})", "rename", "two variables"},
        Case{R"("rescale": {"2t": [1]})", "rescale.2t", "two units"},
        Case{R"("rescale": {"2t": [-1, 0]})", "rescale.2t", "negative"},
        Case{R"("rescale": {"2t": ["K", "m"]})", "rescale.2t", "different things"},
        Case{R"("rescale": {"2t": ["K", "blue"]})", "rescale.2t", "'blue' is not known"},
        Case{R"("trim_edge": [1, 2, 3])", "trim_edge", "four"},
        Case{R"("trim_edge": 2)", "trim_edge", "nothing is left"},
        Case{R"("area": [1, 2, 3])", "area", "[north, west, south, east]"},
        Case{R"("area": [1, 0, 0, 1])", "area", "no cell"},
        Case{R"("interpolate_frequency": "4h")", "interpolate_frequency", "6h"},
        Case{R"("rolling_average": [1, 0, "freq"])", "rolling_average", "before"},
        Case{R"("rolling_average": [-3, 3, "freq"])", "rolling_average", "longer"},
        Case{R"("fill_missing_dates": "near")", "fill_missing_dates", "closest"},
        Case{R"("check_variables_compatibility": {"units": true})",
             "check_variables_compatibility.units", "no such key"},
        Case{R"("set_missing_dates": 3)", "set_missing_dates", "list"}}) {
    INFO(c.options);
    REQUIRE_THROWS_WITH(
        open(concat(", ", c.options)),
        ContainsSubstring(concat("'data.dataset.", c.path, "'")) && ContainsSubstring(c.words));
  }
}

TEST_CASE("float64 stores are rescaled before they are rounded", "[dataset_modifiers]") {
  // Steps that float32 does not see beside 273 K.
  const auto kelvin = [](const std::vector<int64_t>& i) {
    return 273.15 + 1e-6 * static_cast<double>(97 * i[0] + 13 * i[1] + 5 * i[2] + i[3]);
  };
  for (const char* dtype : {"<f8", ">f8"}) {
    for (const std::vector<int64_t>& chunks :
         {std::vector<int64_t>{1, 5, 1, 12}, std::vector<int64_t>{2, 2, 1, 5}}) {
      const auto store = test::write_anemoi(kSpec);
      test::write_array(*store, "data", {.shape = {5, 5, 2, 12}, .chunks = chunks, .dtype = dtype},
                        kelvin);
      test::edit(*store, ".zattrs", "\"field_shape\": [12]", "\"field_shape\": [3, 4]");
      const test::Stores both{{"a", store}};
      // Every second cell of two rows, rescaled there and back and there.
      const DatasetPtr dataset =
          test::open(both, R"({"dataset": {"dataset": {"dataset": "a", "thinning": 2},
                    "rescale": {"2t": ["K", "degC"], "msl": [0.1, 0.3]}},
                    "rescale": {"2t": [1000, 0], "q_500": [1, -273.15]}})");
      const int64_t cells[] = {0, 2, 8, 10};
      REQUIRE(dataset->info().is_float64);
      int differs = 0;
      for (int64_t n = 0; n < 4; ++n) {
        const auto x = [&](int64_t v) { return kelvin({3, v, 1, cells[n]}); };
        const double celsius = x(0) * 1.0 + -273.15;
        REQUIRE(test::value_at(*dataset, 3, 0, 1, n) == static_cast<float>(celsius * 1000.0));
        REQUIRE(test::value_at(*dataset, 3, 1, 1, n) == static_cast<float>(x(1) * 0.1 + 0.3));
        REQUIRE(test::value_at(*dataset, 3, 2, 1, n) == static_cast<float>(x(2)));
        REQUIRE(test::value_at(*dataset, 3, 3, 1, n) == static_cast<float>(x(3) - 273.15));
        differs += static_cast<float>(x(3)) - 273.15f != static_cast<float>(x(3) - 273.15) ? 1 : 0;
      }
      REQUIRE(differs > 0);  // or the test would prove nothing
    }
  }
}
