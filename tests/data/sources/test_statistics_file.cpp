// SPDX-License-Identifier: Apache-2.0
// The file only saves time: what it lacks is computed again. So whatever is wrong with it, nothing
// is taken from it, and nothing but a file system that refuses is an error.
#include "data/sources/statistics_file.h"

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;

namespace {

using Json = nlohmann::ordered_json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kVariables = 2;
const Json kOf{{"files", {"a.nc", 12, 34}}, {"variables", {"t", "q"}}};

KeptStatistics some_statistics() {
  return {.statistics = {.mean = {280.123456789012345, 1e-300},
                         .stdev = {0.1, 5e-324},
                         .minimum = {-1.0 / 3.0, kNan},
                         .maximum = {1.7976931348623157e308, -0.0}},
          .tendencies = {{21600, {{1e-7, 2.0}, {3.0, 4.0}, {5.0, 6.0}, {7.0, 8.0}}},
                         {86400, {{9.0, 10.0}, {11.0, 12.0}, {13.0, 14.0}, {15.0, 16.0}}}}};
}

bool is_same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
  });
}

bool is_same(const Statistics& a, const Statistics& b) {
  return is_same(a.mean, b.mean) && is_same(a.stdev, b.stdev) && is_same(a.minimum, b.minimum) &&
         is_same(a.maximum, b.maximum);
}

// A file that was written as it should be.
class Written {
 public:
  Written() {
    write_statistics_file(path(), kOf, some_statistics());
    original_ = text();
  }
  fs::path path() const { return folder_.path() / "kept" / "statistics.json"; }
  std::string text() const { return read_file(path()); }
  bool is_taken() const { return read_statistics_file(path(), kOf, kVariables).has_value(); }
  // True if the file is taken with another text in it.
  bool is_taken_as(const std::string& text) const {
    write_file_atomic(path(), text);
    return is_taken();
  }
  bool is_taken_with(const std::function<void(Json&)>& change) const {
    Json json = Json::parse(original_);
    change(json);
    return is_taken_as(json.dump());
  }

 private:
  test::TemporaryFolder folder_;
  std::string original_;
};

}  // namespace

TEST_CASE("statistics come back bit for bit", "[statistics_file]") {
  const Written file;
  const auto kept = read_statistics_file(file.path(), kOf, kVariables);
  REQUIRE(kept);
  REQUIRE(is_same(kept->statistics, some_statistics().statistics));
  REQUIRE(kept->tendencies.size() == 2);
  for (const auto& [delta_s, statistics] : some_statistics().tendencies)
    REQUIRE(is_same(kept->tendencies.at(delta_s), statistics));
  REQUIRE(file.is_taken_with([](Json& json) { json.erase("tendencies"); }));
}

TEST_CASE("what is not finite is null in the file and NaN behind it", "[statistics_file]") {
  Statistics s{{1.0}, {2.0}, {-std::numeric_limits<double>::infinity()}, {kNan}};
  REQUIRE(to_json(s).dump() == R"({"mean":[1.0],"stdev":[2.0],"minimum":[null],"maximum":[null]})");
  const test::TemporaryFolder folder;
  write_statistics_file(folder.path() / "s.json", kOf, {.statistics = s, .tendencies = {}});
  const auto kept = read_statistics_file(folder.path() / "s.json", kOf, 1);
  REQUIRE(kept);
  REQUIRE(std::isnan(kept->statistics.minimum[0]));
  REQUIRE(std::isnan(kept->statistics.maximum[0]));
}

TEST_CASE("statistics of something else are not taken", "[statistics_file]") {
  const Written file;
  Json other = kOf;
  other["files"][1] = 13;  // the file has grown
  REQUIRE_FALSE(read_statistics_file(file.path(), other, kVariables));
  REQUIRE_FALSE(read_statistics_file(file.path(), Json(), kVariables));
  REQUIRE_FALSE(read_statistics_file(file.path(), kOf, kVariables + 1));
  REQUIRE_FALSE(read_statistics_file(file.path(), kOf, kVariables - 1));
  REQUIRE_FALSE(read_statistics_file(file.path(), kOf, -1));
  REQUIRE_FALSE(read_statistics_file(file.path().parent_path() / "none.json", kOf, kVariables));
}

TEST_CASE("a file that is cut anywhere is not taken", "[statistics_file]") {
  const Written file;
  const std::string whole = file.text();
  const size_t last = whole.find_last_of('}');  // behind it there is only the end of the line
  for (size_t size = 0; size <= last; ++size) {
    INFO(size << " bytes of " << whole.size());
    REQUIRE_FALSE(file.is_taken_as(whole.substr(0, size)));
  }
  REQUIRE(file.is_taken_as(whole));
}

TEST_CASE("wrong types, lengths and names are not taken", "[statistics_file]") {
  const Written file;
  const Json strange[] = {Json(),
                          Json(true),
                          Json(3),
                          Json("text"),
                          Json::array(),
                          Json::object(),
                          Json::array({1.0}),
                          Json::array({1.0, "2"}),
                          Json::array({1.0, {2.0}}),
                          Json::array({1.0, true}),
                          Json::array({1.0, 2.0, 3.0})};
  for (const Json& value : strange) {
    INFO(value.dump());
    REQUIRE_FALSE(file.is_taken_as(value.dump()));
    REQUIRE_FALSE(file.is_taken_with([&](Json& json) { json["statistics"] = value; }));
    for (const char* key : {"mean", "stdev", "minimum", "maximum"}) {
      REQUIRE_FALSE(file.is_taken_with([&](Json& json) { json["statistics"][key] = value; }));
      REQUIRE_FALSE(file.is_taken_with([&](Json& json) { json["tendencies"]["6h"][key] = value; }));
    }
    REQUIRE_FALSE(file.is_taken_with([&](Json& json) { json["tendencies"]["6h"] = value; }));
    if (!value.is_object())
      REQUIRE_FALSE(file.is_taken_with([&](Json& json) { json["tendencies"] = value; }));
  }
  for (const char* key : {"of", "statistics"})
    REQUIRE_FALSE(file.is_taken_with([&](Json& json) { json.erase(key); }));
  for (const char* key : {"mean", "stdev", "minimum", "maximum"})
    REQUIRE_FALSE(file.is_taken_with([&](Json& json) { json["statistics"].erase(key); }));
  for (const char* name : {"", "soon", "-", "99999999999999999999h"}) {
    INFO(name);
    REQUIRE_FALSE(file.is_taken_with(
        [&](Json& json) { json["tendencies"][name] = json["tendencies"]["6h"]; }));
  }
  REQUIRE_FALSE(file.is_taken_as(R"({"of": 1e999})"));
  REQUIRE_FALSE(file.is_taken_as(std::string(100000, '[')));
  REQUIRE_FALSE(file.is_taken_as(std::string("\xff\x00{", 3)));
}

TEST_CASE("a place that cannot be read or written is named", "[statistics_file]") {
  const Written file;
  REQUIRE_THROWS_WITH(read_statistics_file(file.path().parent_path(), kOf, kVariables),
                      ContainsSubstring(file.path().parent_path().string()));
  REQUIRE_THROWS_WITH(write_statistics_file(file.path() / "s.json", kOf, some_statistics()),
                      ContainsSubstring(file.path().string()));
}
