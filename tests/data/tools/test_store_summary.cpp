// SPDX-License-Identifier: Apache-2.0
#include "data/tools/store_summary.h"

#include "core/check.h"
#include "core/file_io.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;
using zarr::Json;

TEST_CASE("a summary says what a store holds", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path place = folder.path() / "a.zarr";
  test::write_to_folder(*test::write_anemoi({.num_dates = 7, .num_members = 2, .missing = {3}}),
                        place);
  const Json summary = summarise_store(open_store(place.string()));
  CHECK(summary["zarr_format"] == 2);
  CHECK(summary["dates"]["count"] == 7);
  CHECK(summary["dates"]["frequency"] == "6h");
  CHECK(summary["dates"]["missing"] == Json::array({"2020-01-01T18:00:00"}));
  CHECK(summary["dates"]["gaps"].empty());
  CHECK(summary["members"] == 2);
  CHECK(summary["data"]["chunks"] == Json({1, 5, 1, 12}));
  CHECK(summary["data"]["num_chunks"] == 14);
  CHECK(summary["data"]["codec"] == "blosc-lz4, level 5, byte shuffle");
  CHECK(summary["size"]["decoded_bytes"] == 7 * 5 * 2 * 12 * 4);
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place))
    bytes += entry.is_regular_file() ? static_cast<int64_t>(entry.file_size()) : 0;
  CHECK(summary["size"]["stored_bytes"] == bytes);
  CHECK(summary["statistics"]["mean"][1] == test::statistic_value(1, 0));
  CHECK(summary["tendencies"]["1d"]["stdev"][0] == test::tendency_value(0, 1, 1));
  const std::string text = summary_text(summary);
  for (const char* part : {"6h", "1 missing: 2020-01-01T18:00:00", "blosc-lz4", "msl", "1d"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("dates that a store leaves out are gaps", "[data]") {
  const test::TemporaryFolder folder;
  auto store = test::write_anemoi({.num_dates = 6});
  test::write_array(
      *store, "dates", {.shape = {6}, .chunks = {6}, .dtype = "<M8[s]", .fill_value = "0"},
      [](const std::vector<int64_t>& i) {  // two left out after the third
        return 1577836800.0 + 21600.0 * static_cast<double>(i[0] + (i[0] < 3 ? 0 : 2));
      });
  test::write_to_folder(*store, folder.path() / "a");
  const Json summary = summarise_store(open_store((folder.path() / "a").string()));
  CHECK(summary["dates"]["count"] == 8);
  CHECK(summary["dates"]["gaps"] == Json::array({"2020-01-01T18:00:00", "2020-01-02T00:00:00"}));
  CHECK(summary_text(summary).find("2 without a row") != std::string::npos);
}

TEST_CASE("bytes are written with a unit", "[data]") {
  CHECK(format_bytes(512) == "512 B");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(3.0 * (1 << 30)) == "3.0 GiB");
}
