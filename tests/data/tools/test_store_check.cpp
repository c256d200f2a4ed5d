// SPDX-License-Identifier: Apache-2.0
#include "data/tools/store_check.h"

#include <cmath>
#include <fstream>

#include "core/check.h"
#include "core/file_io.h"
#include "data/sources/anemoi_dataset.h"
#include "data/tools/synth.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;
using zarr::Json;

namespace {

SynthOptions small(SynthValues values = SynthValues::kPosition) {
  SynthOptions options;
  for (int n = 0; n < 40; ++n) {
    options.latitudes_deg.push_back(80.0 - 4.0 * n);
    options.longitudes_deg.push_back(9.0 * n);
  }
  options.num_variables = 3;
  options.num_dates = 6;
  options.cell_chunks = 2;
  options.values = values;
  return options;
}

Json check_folder(const fs::path& folder, double margin = 1.0) {
  return check_store(open_store(folder.string()), {.margin = margin, .threads = 2}, nullptr);
}

// Writes one chunk of a store of small(), all cells of a half, again.
void rewrite(const fs::path& folder, int64_t date, const std::function<float(float)>& change) {
  SynthOptions options = small(SynthValues::kWaves);
  std::string bytes;
  for (int64_t v = 0; v < 3; ++v) {
    std::vector<float> field(40);
    synthetic_field(options, date, v, 0, field);
    for (size_t n = 0; n < 20; ++n) {
      const float x = v == 1 ? change(field[n]) : field[n];
      bytes += test::encode_item("<f4", static_cast<double>(x));
    }
  }
  const std::string encoded = test::blosc_encode(bytes, 4);
  std::ofstream(folder / concat("data/", date, ".0.0.0"), std::ios::binary) << encoded;
}

}  // namespace

TEST_CASE("a sound store has no faults, and every value of it is proved", "[data]") {
  const test::TemporaryFolder folder;
  write_synthetic((folder.path() / "a").string(), small(), nullptr);
  const Json report = check_folder(folder.path() / "a");
  CHECK(report["sound"] == true);
  REQUIRE(report["variables"].size() == 3);
  for (const Json& variable : report["variables"]) {
    CHECK(variable["values"] == 6 * 40);
    CHECK(variable["wrong"] == 0);
  }
  CHECK(check_text(report).find("sound") != std::string::npos);
}

TEST_CASE("all damaged chunks are listed, and absent ones", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "a";
  write_synthetic(store.string(), small(), nullptr);
  for (const char* key : {"data/1.0.0.0", "data/3.0.0.1", "longitudes/0"})
    fs::resize_file(store / key, 15);
  fs::remove(store / "data/4.0.0.0");
  const Json report = check_folder(store);
  CHECK(report["sound"] == false);
  const std::string text = check_text(report);
  for (const char* key : {"data/1.0.0.0", "data/3.0.0.1", "longitudes/0", "data/4.0.0.0"}) {
    CAPTURE(key);
    CHECK(text.find((store / key).string()) != std::string::npos);
  }
  CHECK(report["absent"].size() == 1);
}

TEST_CASE("swapped chunks of a synthetic store are wrong values by date and variable", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "a";
  write_synthetic(store.string(), small(), nullptr);
  fs::copy_file(store / "data/2.0.0.0", store / "data/5.0.0.0",
                fs::copy_options::overwrite_existing);
  const Json report = check_folder(store);
  CHECK(report["sound"] == false);
  REQUIRE(report["findings"].size() == 3);
  for (const Json& finding : report["findings"]) {
    CHECK(finding["date"] == "2020-01-02T06:00:00");
    CHECK(finding["wrong"] == 20);
  }
}

TEST_CASE("NaN, infinity and outliers are found by date and variable", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "a";
  write_synthetic(store.string(), small(SynthValues::kWaves), nullptr);
  const auto finding_of = [&](const std::function<float(float)>& change, double margin = 1.0) {
    rewrite(store, 3, change);
    const Json report = check_folder(store, margin);
    CHECK(report["faults"].empty());
    REQUIRE(report["findings"].size() <= 1);
    if (report["findings"].empty()) return Json();
    CHECK(report["findings"][0]["date"] == "2020-01-01T18:00:00");
    CHECK(report["findings"][0]["variable"] == "10v");
    return report["findings"][0];
  };
  CHECK(finding_of([](float x) { return x; }).is_null());
  CHECK(finding_of([](float) { return std::nanf(""); })["nan"] == 20);
  CHECK(finding_of([](float) { return -INFINITY; })["infinite"] == 20);
  CHECK(finding_of([](float) { return 1e20f; })["outliers"] == 20);
  const auto further = [](float x) { return x + 8.0f; };  // the range is about 5
  CHECK(finding_of(further)["outliers"] > 0);
  CHECK(finding_of(further, 5.0).is_null());
}

TEST_CASE("NaN that the attributes allow are counted, and no fault", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "a";
  write_synthetic(store.string(), small(SynthValues::kWaves), nullptr);
  rewrite(store, 3, [](float) { return std::nanf(""); });
  for (const auto& [allowed, sound] :
       {std::pair{Json::array({"10v"}), true}, {Json::array({"10u"}), false}, {Json(true), true}}) {
    Json attributes = Json::parse(read_file(store / ".zattrs"));
    attributes["allow_nans"] = allowed;
    write_file_atomic(store / ".zattrs", attributes.dump());
    const Json report = check_folder(store);
    CHECK(report["sound"] == sound);
    CHECK(report["variables"][1]["nan"] == 20);
  }
}

TEST_CASE("declared missing dates may have no chunk", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "a";
  auto memory = test::write_anemoi({.num_dates = 5, .missing = {2}});
  test::write_to_folder(*memory, store);
  const Json report = check_folder(store, 1e9);
  CHECK(report["absent"].empty());
  CHECK(report["chunks"].get<int64_t>() > 4);
  CHECK(report["variables"][0]["values"] == 4 * 12);
}

TEST_CASE("statistics that cannot be and dates that are left out are faults", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "a";
  auto memory = test::write_anemoi({.num_dates = 4});
  test::write_array(
      *memory, "dates", {.shape = {4}, .chunks = {4}, .dtype = "<M8[s]", .fill_value = "0"},
      [](const std::vector<int64_t>& i) {  // one left out after the second
        return 1577836800.0 + 21600.0 * static_cast<double>(i[0] + (i[0] < 2 ? 0 : 1));
      });
  test::write_array(*memory, "stdev", {.shape = {5}, .chunks = {5}, .dtype = "<f8"},
                    [](const std::vector<int64_t>& i) {
                      return i[0] == 1 ? -1.0 : i[0] == 3 ? INFINITY : 1.0;
                    });
  test::write_array(*memory, "mean", {.shape = {5}, .chunks = {5}, .dtype = "<f8"},
                    [](const auto& i) { return i[0] == 4 ? 0.0 : 350.0; });
  test::write_to_folder(*memory, store);
  const Json report = check_folder(store, 1e9);
  CHECK(report["faults"].size() == 4);
  const std::string text = check_text(report);
  CHECK(text.find("statistics of 'tp' cannot be") != std::string::npos);
  CHECK(text.find("2020-01-01T12:00:00 has no row") != std::string::npos);
  CHECK(text.find("statistics of 'msl' cannot be") != std::string::npos);
  CHECK(text.find("statistics of 'q_500' cannot be") != std::string::npos);
}

TEST_CASE("a store without sound metadata is still decoded", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "a";
  write_synthetic(store.string(), small(), nullptr);
  write_file_atomic(store / ".zattrs", "{");
  fs::resize_file(store / "data/1.0.0.0", 15);
  const Json report = check_folder(store);
  CHECK(report["faults"].size() == 2);
}
