// SPDX-License-Identifier: Apache-2.0
// Stores that the Python packages wrote, against the values and hashes that they read from them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;

namespace {

// The stores of the fixture, unpacked as long as the object lives.
struct Fixture {
  Fixture() {
    const auto unpack = test::run_command(
        concat("tar -xf ", test::fixture("datasets/variants.tar"), " -C ", folder.path()));
    REQUIRE(unpack.exit_code == 0);
    json = nlohmann::json::parse(read_file(test::fixture("datasets/variants.json")));
  }
  AnemoiDataset open(const std::string& name) const {
    DatasetOptions options;
    options.dataset = (folder.path() / name).string();
    return AnemoiDataset(options);
  }
  test::TemporaryFolder folder;
  nlohmann::json json;
};

// The reference hashes rows as (variable, member, cell), every NaN as 0x7fc00000.
std::string hash_of_rows(const AnemoiDataset& dataset) {
  const DatasetInfo& info = dataset.info();
  const auto num_cells = static_cast<size_t>(info.num_nodes());
  const size_t num_variables = info.variables.size();
  std::vector<float> cells(num_cells * num_variables), fields(cells.size());
  Sha256 hash;
  for (int64_t row = 0; row < info.num_rows(); ++row) {
    if (row == info.missing_rows.at(0)) continue;
    dataset.read(row, {0, info.num_nodes()}, cells);
    for (size_t n = 0; n < num_cells; ++n) {
      for (size_t v = 0; v < num_variables; ++v) {
        const float value = cells[n * num_variables + v];
        fields[v * num_cells + n] = std::isnan(value) ? std::bit_cast<float>(0x7fc00000) : value;
      }
    }
    hash.update(fields.data(), fields.size() * sizeof(float));
  }
  return hash.finish();
}

}  // namespace

TEST_CASE("stores of both formats hold what Python reads from them", "[anemoi_fixture]") {
  const Fixture fixture;
  const auto& expected = fixture.json["variants"]["base"];
  for (const char* name : {"base.zarr", "v3_shard.zarr"}) {
    INFO(name);
    const AnemoiDataset dataset = fixture.open(name);
    const DatasetInfo& info = dataset.info();
    REQUIRE(info.variables == expected["variables"].get<std::vector<std::string>>());
    REQUIRE(format_date(info.dates_s.at(0)) == expected["dates"][0].get<std::string>());
    REQUIRE(info.missing_rows == std::vector<int64_t>{6});
    REQUIRE(format_duration(info.frequency_s) == expected["frequency"].get<std::string>());
    REQUIRE(info.field_shape == std::vector<int64_t>{19, 36});
    REQUIRE(info.statistics.mean == expected["mean"].get<std::vector<double>>());
    REQUIRE(info.statistics.stdev == expected["stdev"].get<std::vector<double>>());
    REQUIRE(info.tendencies.at(21600).stdev ==
            expected["statistics_tendencies_6h_stdev"].get<std::vector<double>>());
    REQUIRE(info.tendencies.size() == 3);
    REQUIRE(hash_of_rows(dataset) ==
            expected["open_dataset"]["sha256_rows_not_missing"].get<std::string>());
    for (const auto& literal : expected["literals"]) {
      const auto index = literal["index"].get<std::vector<int64_t>>();
      std::vector<float> cell(info.variables.size());
      dataset.read(index[0], {index[3], index[3] + 1}, cell);
      REQUIRE(cell[static_cast<size_t>(index[1])] == literal["value"].get<float>());
    }
  }
}
