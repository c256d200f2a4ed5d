// SPDX-License-Identifier: Apache-2.0
#include "data/combine/computed_dataset.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/open_test_dataset.h"

using namespace aifs;
using namespace aifs::data;
using test::position_value;

namespace {

const test::AnemoiSpec kSpec{.num_dates = 4, .num_members = 2, .num_cells = 10};

DatasetPtr source() {
  static const test::Stores stores{{"a", test::write_anemoi(kSpec)}};
  return test::open(stores, "\"a\"");
}

}  // namespace

TEST_CASE("blends lie between two rows, single rows are handed on", "[computed_dataset]") {
  std::vector<RowMix> mixes{
      {.rows = {2}},
      {.kind = RowMix::Kind::kBlend, .rows = {0, 1}, .alpha = 0.25},
      {.kind = RowMix::Kind::kBlend, .rows = {3, 1}, .alpha = 0.5, .in_double = true}};
  DatasetInfo info = source()->info();
  info.dates_s.resize(3);
  const DatasetPtr mixed = mix_rows(source(), info, mixes);
  for (int64_t v = 0; v < 5; ++v) {
    for (int64_t e = 0; e < 2; ++e) {
      const auto at = [&](int64_t row) { return position_value(kSpec, row, v, e, 7); };
      REQUIRE(test::value_at(*mixed, 0, v, e, 7) == at(2));
      REQUIRE(test::value_at(*mixed, 1, v, e, 7) == 0.75f * at(0) + 0.25f * at(1));
      REQUIRE(test::value_at(*mixed, 2, v, e, 7) == 0.5f * at(3) + 0.5f * at(1));
    }
  }
}

TEST_CASE("means are of what is not NaN", "[computed_dataset]") {
  auto store = test::write_anemoi(
      {.variables = {"a"}, .num_dates = 3, .num_cells = 2, .compressor = "null"});
  const auto floats = [](float first, float second) {
    return test::encode_item("<f4", first) + test::encode_item("<f4", second);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  store->put("data/0.0.0.0", floats(1.0f, nan));
  store->put("data/1.0.0.0", floats(nan, nan));
  store->put("data/2.0.0.0", floats(4.0f, nan));
  const test::Stores stores{{"a", store}};
  const DatasetPtr dataset = test::open(stores, "\"a\"");
  DatasetInfo info = dataset->info();
  info.dates_s.resize(1);
  const DatasetPtr mean =
      mix_rows(dataset, info, {{.kind = RowMix::Kind::kMean, .rows = {0, 1, 2}}});
  const std::vector<float> values = test::row_of(*mean, 0);
  REQUIRE(values[0] == 2.5f);
  REQUIRE(std::isnan(values[1]));
}

TEST_CASE("cells are those of the source, weighted, or NaN", "[computed_dataset]") {
  DatasetInfo info = source()->info();
  info.latitudes_deg.resize(3);
  info.longitudes_deg.resize(3);
  const DatasetPtr near = mix_cells(source(), info, {.num_neighbours = 1, .cells = {9, -1, 4}});
  REQUIRE(test::value_at(*near, 1, 2, 1, 0) == position_value(kSpec, 1, 2, 1, 9));
  REQUIRE(std::isnan(test::value_at(*near, 1, 2, 1, 1)));
  REQUIRE(test::value_at(*near, 1, 2, 1, 2) == position_value(kSpec, 1, 2, 1, 4));
  const DatasetPtr mean = mix_cells(source(), info,
                                    {.num_neighbours = 2,
                                     .cells = {0, 1, 2, 3, 8, 9},
                                     .weights = {0.5f, 0.5f, 1.0f, 0.0f, 0.25f, 0.75f}});
  const auto at = [](int64_t cell) { return position_value(kSpec, 3, 4, 0, cell); };
  REQUIRE(test::value_at(*mean, 3, 4, 0, 0) == 0.5f * at(0) + 0.5f * at(1));
  REQUIRE(test::value_at(*mean, 3, 4, 0, 1) == at(2));
  REQUIRE(test::value_at(*mean, 3, 4, 0, 2) == 0.25f * at(8) + 0.75f * at(9));
}
