// SPDX-License-Identifier: Apache-2.0
#include "data/combine/combinations.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/open_test_dataset.h"

using namespace aifs;
using namespace aifs::data;
using test::AnemoiSpec;
using test::position_value;

namespace {

// Two stores of the same dates and cells with a variable in common, one that goes on in time, one
// of other cells, and a quarter of the globe's cells of it.
struct Fixture {
  AnemoiSpec a{.variables = {"t", "u", "v"}, .num_dates = 4};
  AnemoiSpec b{.variables = {"u", "q"}, .num_dates = 4, .missing = {2}};
  AnemoiSpec later{
      .variables = {"t", "u", "v"}, .num_dates = 3, .first_date_s = 1577836800 + 4 * 21600};
  test::Stores stores{{"a", test::write_anemoi(a)},
                      {"b", test::write_anemoi(b)},
                      {"later", test::write_anemoi(later)}};

  DatasetPtr open(const std::string& json) const { return test::open(stores, json); }
};

const CombinationPlace kPlace{"data.dataset.here"};

}  // namespace

TEST_CASE("of a variable that two have, a join has the last one's values at the first one's place",
          "[combinations]") {
  const Fixture f;
  const DatasetPtr joined = join_variables({f.open("\"a\""), f.open("\"b\"")}, kPlace);
  const DatasetInfo& info = joined->info();
  REQUIRE(info.variables == std::vector<std::string>{"t", "u", "v", "q"});
  REQUIRE(info.missing_rows == std::vector<int64_t>{2});
  REQUIRE(test::value_at(*joined, 3, 0, 0, 5) == position_value(f.a, 3, 0, 0, 5));
  REQUIRE(test::value_at(*joined, 3, 1, 0, 5) == position_value(f.b, 3, 0, 0, 5));
  REQUIRE(test::value_at(*joined, 3, 2, 0, 5) == position_value(f.a, 3, 2, 0, 5));
  REQUIRE(test::value_at(*joined, 3, 3, 0, 5) == position_value(f.b, 3, 1, 0, 5));
  REQUIRE(info.statistics.mean ==
          std::vector<double>{test::statistic_value(0, 0), test::statistic_value(0, 0),
                              test::statistic_value(2, 0), test::statistic_value(1, 0)});
  REQUIRE(info.tendencies.size() == 2);
}

TEST_CASE("concatenated dates follow each other, gaps become missing dates where wanted",
          "[combinations]") {
  const Fixture f;
  const DatasetPtr whole = join_dates({f.open("\"a\""), f.open("\"later\"")}, false, kPlace);
  REQUIRE(whole->info().num_rows() == 7);
  REQUIRE(test::value_at(*whole, 3, 1, 0, 0) == position_value(f.a, 3, 1, 0, 0));
  REQUIRE(test::value_at(*whole, 4, 1, 0, 0) == position_value(f.later, 0, 1, 0, 0));
  const DatasetPtr early = f.open(R"({"dataset": "a", "end": "2020-01-01T06:00:00"})");
  REQUIRE_THROWS_WITH(join_dates({early, f.open("\"later\"")}, false, kPlace),
                      ContainsSubstring("data.dataset.here") && ContainsSubstring("gap") &&
                          ContainsSubstring("2020-01-01T06:00:00"));
  const DatasetPtr gaps = join_dates({early, f.open("\"later\"")}, true, kPlace);
  REQUIRE(gaps->info().missing_rows == std::vector<int64_t>{2, 3});
  REQUIRE(test::value_at(*gaps, 4, 2, 0, 1) == position_value(f.later, 0, 2, 0, 1));
  REQUIRE_THROWS_AS(test::row_of(*gaps, 2), DataError);
  REQUIRE_THROWS_WITH(join_dates({f.open("\"later\""), f.open("\"a\"")}, true, kPlace),
                      ContainsSubstring("do not follow each other"));
}

TEST_CASE("members and grids stand one after the other", "[combinations]") {
  const Fixture f;
  const DatasetPtr b = f.open(R"({"dataset": "b", "rename": {"u": "t", "q": "u"}})");
  const DatasetPtr a = f.open(R"({"dataset": "a", "select": ["t", "u"]})");
  const DatasetPtr members = join_members({a, b, a}, kPlace);
  REQUIRE(members->info().ensemble_size == 3);
  REQUIRE(test::value_at(*members, 1, 1, 1, 4) == position_value(f.b, 1, 1, 0, 4));
  REQUIRE(test::value_at(*members, 1, 1, 2, 4) == position_value(f.a, 1, 1, 0, 4));
  const DatasetPtr both = join_grids({a, b}, kPlace);
  REQUIRE(both->info().grids == std::vector<int64_t>{12, 12});
  REQUIRE(both->info().num_nodes() == 24);
  REQUIRE(test::value_at(*both, 1, 0, 0, 11) == position_value(f.a, 1, 0, 0, 11));
  REQUIRE(test::value_at(*both, 1, 0, 0, 12) == position_value(f.b, 1, 0, 0, 0));
  std::vector<float> across(2 * 6);  // cells of both
  both->read(3, {9, 15}, across);
  for (int64_t n = 0; n < 6; ++n) {
    const float expected =
        n < 3 ? position_value(f.a, 3, 1, 0, 9 + n) : position_value(f.b, 3, 1, 0, n - 3);
    REQUIRE(across[static_cast<size_t>(2 * n + 1)] == expected);
  }
}

TEST_CASE("what must be alike is named with its place when it is not", "[combinations]") {
  const Fixture f;
  const auto a = f.open("\"a\""), b = f.open("\"b\""), later = f.open("\"later\"");
  const auto thin = f.open(R"({"dataset": "a", "frequency": "12h"})");
  const auto cells = f.open(R"({"dataset": "a", "area": [90, 0, 89.995, 1]})");
  REQUIRE_THROWS_WITH(join_members({a, b}, kPlace), ContainsSubstring("data.dataset.here") &&
                                                        ContainsSubstring("variables") &&
                                                        ContainsSubstring("t, u, v"));
  REQUIRE_THROWS_WITH(join_variables({a, later}, kPlace), ContainsSubstring("differ in dates"));
  REQUIRE_THROWS_WITH(join_variables({a, thin}, kPlace), ContainsSubstring("differ in frequency"));
  REQUIRE_THROWS_WITH(join_variables({a, cells}, kPlace), ContainsSubstring("differ in cells"));
  REQUIRE_THROWS_WITH(join_members({a}, kPlace), ContainsSubstring("combines 1 dataset"));
}

TEST_CASE("units and kinds must agree where both are known, unless that does not matter",
          "[combinations]") {
  Fixture f;
  const auto described = [&](const char* name, const std::string& text) {
    auto store = test::write_anemoi(f.a);
    test::edit(*store, ".zattrs", "\"resolution\": null",
               R"("resolution": null, "variables_metadata": {"t": )" + text + "}");
    f.stores[name] = store;
    return f.open("\"" + std::string(name) + "\"");
  };
  const auto kelvin = described("k", R"({"units": "K"})");
  const auto celsius = described("c", R"({"units": "degC"})");
  const auto same = described("s", R"({"units": "kelvin", "mars": {"levtype": "pl"}})");
  const auto surface = described("f", R"({"mars": {"levtype": "sfc"}})");
  const auto sum = described("p", R"({"process": "accumulation", "period": ["0d", "6h"]})");
  const auto longer =
      described("l", R"({"process": "accumulation", "period": ["0:00:00", "12h"]})");
  REQUIRE_THROWS_WITH(join_members({kelvin, celsius}, kPlace),
                      ContainsSubstring("variable 't' is in K and in degC"));
  CombinationPlace lax = kPlace;
  lax.checks.units.names = {"t"};
  REQUIRE_NOTHROW(join_members({kelvin, celsius}, lax));
  REQUIRE_NOTHROW(join_members({kelvin, same}, kPlace));
  REQUIRE_NOTHROW(join_members({kelvin, surface}, kPlace));
  REQUIRE_THROWS_WITH(join_members({same, surface}, kPlace), ContainsSubstring("pl and sfc"));
  REQUIRE_THROWS_WITH(join_members({sum, longer}, kPlace), ContainsSubstring("6h and 12h"));
  REQUIRE_THROWS_WITH(join_members({kelvin, sum}, kPlace), ContainsSubstring("over 0"));
  lax.checks.period.all = true;
  REQUIRE_NOTHROW(join_members({sum, longer}, lax));
}

TEST_CASE("the grid of one dataset gets the nearest values of another", "[combinations]") {
  const Fixture f;
  const DatasetPtr target = f.open(R"({"dataset": "a", "area": [89.9995, 0, 89.9965, 1]})");
  REQUIRE(target->info().num_nodes() == 3);  // cells 1 to 3
  const DatasetPtr added = on_grid_of(target, f.open("\"b\""), NearestOptions{}, kPlace);
  REQUIRE(added->info().variables == std::vector<std::string>{"q"});
  for (int64_t n = 0; n < 3; ++n)
    REQUIRE(test::value_at(*added, 1, 0, 0, n) == position_value(f.b, 1, 1, 0, n + 1));
  REQUIRE_THROWS_WITH(on_grid_of(target, f.open("\"b\""), std::nullopt, kPlace),
                      ContainsSubstring("differ in cells"));
  REQUIRE_THROWS_WITH(on_grid_of(target, f.open("\"a\""), NearestOptions{}, kPlace),
                      ContainsSubstring("no variable"));
  REQUIRE_THROWS_WITH(on_grid_of(target, f.open("\"b\""), NearestOptions{3, 1e-9}, kPlace),
                      ContainsSubstring("neighbours"));
}

TEST_CASE("datasets are adjusted to what they have in common", "[combinations]") {
  const Fixture f;
  const std::vector<DatasetPtr> both{f.open(R"({"dataset": "a", "start": "2020-01-01T06:00:00"})"),
                                     f.open(R"({"dataset": "b", "frequency": "12h"})")};
  const auto fitted = adjusted(both, {"select", "start", "end"}, "p");
  REQUIRE(fitted[0]->info().variables == std::vector<std::string>{"u"});
  REQUIRE(fitted[0]->info().dates_s == std::vector<int64_t>{1577836800 + 43200});
  REQUIRE(fitted[1]->info().dates_s == std::vector<int64_t>{1577836800 + 43200});
  const auto slower = adjusted(both, {"frequency"}, "p");
  REQUIRE(slower[0]->info().frequency_s == 43200);
  REQUIRE_THROWS_WITH(adjusted({f.open("\"a\""), f.open("\"later\"")}, {"start"}, "p"),
                      ContainsSubstring("no date in common"));
}
