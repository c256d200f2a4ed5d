// SPDX-License-Identifier: Apache-2.0
#include "data/fields/bad_input.h"

#include <limits>
#include <map>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kMembers = 2, kCells = 6, kVariables = 3;

// Ordinary values but in single places.
class SpottedDataset : public Dataset {
 public:
  struct Place {
    int64_t row, member, cell, variable;
    auto operator<=>(const Place&) const = default;
  };

  SpottedDataset() {
    info_.name = "x.zarr";
    info_.variables = {"2t", "q", "z"};
    info_.frequency_s = 21600;
    for (int64_t row = 0; row < 8; ++row)
      info_.dates_s.push_back(parse_date("2020-01-01") + row * 21600);
    for (int64_t cell = 0; cell < kCells; ++cell) {
      info_.latitudes_deg.push_back(25.0 - 10.0 * static_cast<double>(cell));
      info_.longitudes_deg.push_back(30.0);
    }
    info_.ensemble_size = kMembers;
    info_.statistics = {{280, 0.01, 0}, {10, 0.01, 0}, {200, 0, 0}, {320, 0.02, 0}};
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, NodeRange nodes, std::span<float> out) const override {
    size_t i = 0;
    for (int64_t e = 0; e < kMembers; ++e) {
      for (int64_t n = nodes.begin; n < nodes.end; ++n) {
        for (int64_t v = 0; v < kVariables; ++v) {
          const auto spot = spots.find({row, e, n, v});
          out[i++] = spot == spots.end() ? 1.0f : spot->second;
        }
      }
    }
  }
  std::map<Place, float> spots;
  DatasetInfo info_;
};

const std::vector<int64_t> kRows{2, 3, 5};

}  // namespace

TEST_CASE("sound input has nothing bad, and NaN is another matter", "[bad_input]") {
  SpottedDataset dataset;
  dataset.spots[{3, 1, 2, 1}] = std::numeric_limits<float>::quiet_NaN();
  dataset.spots[{3, 0, 2, 0}] = 9999.0f;    // may be a value
  dataset.spots[{4, 0, 0, 0}] = kInfinity;  // a row that was not used
  dataset.spots[{5, 0, 0, 0}] = kInfinity;  // a cell of another rank
  REQUIRE_FALSE(first_bad_input(dataset, {1, kCells}, kRows).has_value());
}

TEST_CASE("infinity and netCDF's fill value are found with variable, date and cell",
          "[bad_input]") {
  for (const float bad : {kInfinity, -kInfinity, 9.96921e36f, 9.9692099683868690e+36f}) {
    SpottedDataset dataset;
    dataset.spots[{3, 1, 4, 1}] = bad;
    if (bad == 9.96921e36f) REQUIRE(bad == 9.9692099683868690e+36f);
    const auto found = first_bad_input(dataset, {1, kCells}, kRows);
    REQUIRE(found.has_value());
    REQUIRE(found->variable == "q");
    REQUIRE(found->row == 3);
    REQUIRE(found->date_s == parse_date("2020-01-01T18:00:00"));
    REQUIRE(found->member == 1);
    REQUIRE(found->cell == 4);
    REQUIRE(found->value == bad);
    REQUIRE_THAT(found->text, ContainsSubstring("the input is bad: 'x.zarr': q is ") &&
                                  ContainsSubstring("on 2020-01-01T18:00:00 in cell 4 (15 S, 30 E)"
                                                    " of member 1"));
    REQUIRE_THAT(found->hint, ContainsSubstring("drop q"));
    REQUIRE_THAT(found->text, ContainsSubstring(std::isinf(bad) ? "infinite" : "netCDF"));
  }
}

TEST_CASE("numbers absurdly far from what was stored are bad, large weather is not",
          "[bad_input]") {
  SpottedDataset dataset;
  dataset.spots[{2, 0, 1, 0}] = 5000.0f;  // 2t, far above 320, but not absurd
  dataset.spots[{3, 0, 1, 1}] = 1e20f;    // q
  auto found = first_bad_input(dataset, {0, kCells}, kRows);
  REQUIRE(found.has_value());
  REQUIRE(found->variable == "q");
  REQUIRE_THAT(found->text, ContainsSubstring("stored minimum and maximum, 0 and 0.02"));
  // Infinity explains more, even if it comes later.
  dataset.spots[{5, 0, 2, 0}] = kInfinity;
  REQUIRE(first_bad_input(dataset, {0, kCells}, kRows)->variable == "2t");
}

TEST_CASE("a variable without statistics, or of zeros, has a limit of its own", "[bad_input]") {
  SpottedDataset dataset;
  dataset.spots[{3, 0, 1, 2}] = 1e12f;  // z is 0 in the statistics
  REQUIRE_FALSE(first_bad_input(dataset, {0, kCells}, kRows).has_value());
  dataset.spots[{3, 0, 1, 2}] = 1e20f;
  REQUIRE(first_bad_input(dataset, {0, kCells}, kRows)->variable == "z");
  dataset.info_.statistics = {};
  REQUIRE_THAT(first_bad_input(dataset, {0, kCells}, kRows)->text,
               ContainsSubstring("absurdly large"));
}
