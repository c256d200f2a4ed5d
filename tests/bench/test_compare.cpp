// SPDX-License-Identifier: Apache-2.0
#include "bench/compare.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::ordered_json;

namespace {

Json result(const std::string& name, double step_ms, double peak_gib) {
  return {{"case", name},        {"card", "a card"},
          {"mode", "step"},      {"recompute_mappers", "none"},
          {"kernels", "auto"},   {"recompute_processor", "none"},
          {"mapper_chunks", 1},  {"ranks", {{"model", 1}, {"data", 1}}},
          {"cuda_graph", false}, {"parameters", 1000},
          {"edges", {1, 2, 3}},  {"step_ms", step_ms},
          {"peak_gib", peak_gib}};
}

}  // namespace

TEST_CASE("more time or memory than before is found, less is not", "[bench]") {
  const Json earlier{result("a", 100.0, 10.0), result("b", 100.0, 10.0)};
  REQUIRE(bench::slower_than({result("a", 109.0, 10.05), result("b", 50.0, 5.0)}, earlier).empty());
  const auto slow = bench::slower_than({result("b", 111.0, 10.2), result("a", 1.0, 1.0)}, earlier);
  REQUIRE(slow.size() == 2);
  REQUIRE(slow[0] == "b: 111.00 ms, before 100.00 (+11.0 %)");
  REQUIRE(slow[1] == "b: 10.20 GiB, before 10.00 (+2.0 %)");
}

TEST_CASE("kernels are compared by their time, with the list of a file", "[bench]") {
  const auto kernel = [](double us, const char* card) -> Json {
    return {{"case", "norm"}, {"card", card}, {"us", us}};
  };
  const Json file{{"results", {kernel(10.0, "a card")}}, {"commit", "x"}};
  REQUIRE(bench::slower_than(Json::array({kernel(12.4, "a card")}), file).empty());
  REQUIRE(bench::slower_than(Json::array({kernel(13.0, "a card")}), file) ==
          std::vector<std::string>{"norm: 13.00 us, before 10.00 (+30.0 %)"});
  REQUIRE(bench::slower_than(Json::array({kernel(1.0, "another")}), file).size() == 1);
}

TEST_CASE("only the same work is compared", "[bench]") {
  const Json earlier{result("a", 100.0, 10.0)};
  for (const char* key :
       {"case", "card", "mode", "kernels", "recompute_mappers", "parameters", "edges"}) {
    Json other = result("a", 100.0, 10.0);
    other[key] = "another";
    REQUIRE(bench::slower_than(Json::array({other}), earlier).size() == 1);
  }
  for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{
           {"bucket_mb", 25.0}, {"encoder_chunks", 7}, {"rollout", 2}}) {
    Json other = result("a", 100.0, 10.0);
    other[key] = value;
    REQUIRE(bench::slower_than(Json::array({other}), earlier).size() == 1);
  }
  REQUIRE(bench::slower_than(Json::array({Json{{"case", "a"}, {"error", "no memory"}}}), earlier) ==
          std::vector<std::string>{"a was not timed"});
  REQUIRE_THROWS_AS(bench::slower_than(earlier, Json::object()), DataError);
}
