// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/raw_items.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::zarr;

TEST_CASE("regions of any chunks, order and byte order are the same bytes", "[zarr]") {
  const std::vector<int64_t> shape{4, 3, 5};
  const auto value = [](const std::vector<int64_t>& i) {
    return static_cast<double>((i[0] * 3 + i[1]) * 5 + i[2]);
  };
  const Region region{{1, 0, 2}, {4, 2, 5}};
  for (const char* dtype : {"<f4", ">f4"}) {
    for (const char order : {'C', 'F'}) {
      zarr::MemoryStore memory("memory");
      test::write_array(memory, "a",
                        {.shape = shape, .chunks = {2, 3, 4}, .dtype = dtype, .order = order},
                        value);
      const Array array(std::make_shared<MemoryStore>(memory), "a");
      std::vector<float> out(static_cast<size_t>(region.num_items()));
      std::vector<Region> absent;
      ChunkScratch scratch;
      read_raw(array, region, std::as_writable_bytes(std::span(out)), absent, scratch);
      size_t at = 0;
      for (int64_t i = 1; i < 4; ++i)
        for (int64_t j = 0; j < 2; ++j)
          for (int64_t k = 2; k < 5; ++k)
            CHECK(out[at++] == static_cast<float>(value({i, j, k})));
      CHECK(absent.empty());
    }
  }
}

TEST_CASE("absent chunks give the fill value, and are told", "[zarr]") {
  zarr::MemoryStore memory("memory");
  test::write_array(
      memory, "a",
      {.shape = {4, 2}, .chunks = {1, 2}, .fill_value = "-3.5", .absent = {"1.0", "2.0"}},
      [](const auto&) { return 1.0; });
  const Array array(std::make_shared<MemoryStore>(memory), "a");
  std::vector<float> out(6);
  std::vector<Region> absent;
  ChunkScratch scratch;
  read_raw(array, {{0, 0}, {3, 2}}, std::as_writable_bytes(std::span(out)), absent, scratch);
  CHECK(out == std::vector<float>{1, 1, -3.5f, -3.5f, -3.5f, -3.5f});
  CHECK(covers(absent, {{1, 0}, {3, 2}}));
  CHECK_FALSE(covers(absent, {{0, 0}, {2, 2}}));
  CHECK_FALSE(covers(absent, {{2, 0}, {4, 2}}));
}

TEST_CASE("fill values have the bits of their type", "[zarr]") {
  const auto bits = [](const char* type, const char* fill) {
    const DataType parsed = parse_numpy_type(type);
    const auto item = fill_item(parsed, parse_fill_value(Json::parse(fill), parsed));
    uint64_t result = 0;
    std::memcpy(&result, item.data(), item.size());
    return result;
  };
  CHECK(bits("<f2", "1.5") == 0x3e00);
  CHECK(bits("<f2", "6e-8") == 0x0001);  // the smallest
  CHECK(bits("<f2", "\"-Infinity\"") == 0xfc00);
  CHECK(bits("<f4", "-2") == 0xc0000000);
  CHECK(bits("<f8", "1") == 0x3ff0000000000000);
  CHECK(bits("<i2", "-1") == 0xffff);
  CHECK(bits("|b1", "true") == 1);
}
