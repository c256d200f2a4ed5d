// SPDX-License-Identifier: Apache-2.0
#include "data/fields/field_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace aifs::data;

namespace {

std::vector<float> some_values(size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values)
    value = 1e3f * normal(random);
  return values;
}

// Byte b of value i at b * count + i.
std::vector<std::byte> planes_of(const std::vector<float>& values) {
  std::vector<std::byte> planes(4 * values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    std::byte bytes[4];
    std::memcpy(bytes, &values[i], 4);
    for (size_t b = 0; b < 4; ++b)
      planes[b * values.size() + i] = bytes[b];
  }
  return planes;
}

bool same_bits(const float* a, const float* b, size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("planes become mapped values, the same bits at any size and place", "[field_kernels]") {
  INFO(field_kernels_name());
  const AffineMap map{0.37f, -2.5f};
  for (const size_t count : {0, 1, 7, 15, 16, 17, 31, 64, 65, 1000, 4099}) {
    const std::vector<float> values = some_values(count);
    const std::vector<std::byte> planes = planes_of(values);
    std::vector<float> expected(count);
    for (size_t i = 0; i < count; ++i) {
      const volatile float product = values[i] * map.mul;  // rounded
      expected[i] = product + map.add;
    }
    for (const size_t shift : {0, 1, 5, 15}) {
      for (const bool streams : {false, true}) {
        INFO(count << " values, shifted by " << shift << ", streams " << streams);
        constexpr float kMark = 12345.0f;
        std::vector<float> out(count + 32, kMark);
        REQUIRE(map_planes(planes.data(), count, static_cast<int64_t>(count), map, streams,
                           out.data() + shift));
        REQUIRE(same_bits(out.data() + shift, expected.data(), count));
        // Nothing beside it is touched.
        for (size_t i = 0; i < out.size(); ++i) {
          if (i < shift || i >= shift + count) REQUIRE(out[i] == kMark);
        }
      }
    }
    std::vector<float> joined(count), mapped(count);
    join_planes(planes.data(), count, static_cast<int64_t>(count), joined.data());
    REQUIRE(same_bits(joined.data(), values.data(), count));
    REQUIRE(map_floats(values.data(), 1, static_cast<int64_t>(count), map, mapped.data()));
    REQUIRE(same_bits(mapped.data(), expected.data(), count));
  }
}

TEST_CASE("a part of planes is mapped alone", "[field_kernels]") {
  const std::vector<float> values = some_values(200);
  const std::vector<std::byte> planes = planes_of(values);
  std::vector<float> out(50);
  REQUIRE(map_planes(planes.data() + 73, 200, 50, {}, false, out.data()));
  REQUIRE(same_bits(out.data(), values.data() + 73, 50));
}

TEST_CASE("NaN are seen wherever they are, infinities are not NaN", "[field_kernels]") {
  for (const size_t count : {1, 16, 33, 100}) {
    for (size_t bad = 0; bad < count; ++bad) {
      std::vector<float> values = some_values(count), out(count);
      const auto n = static_cast<int64_t>(count);
      values[bad] = std::numeric_limits<float>::infinity();
      REQUIRE(map_planes(planes_of(values).data(), count, n, {2.0f, 1.0f}, false, out.data()));
      REQUIRE(map_floats(values.data(), 1, n, {2.0f, 1.0f}, out.data()));
      values[bad] = std::numeric_limits<float>::quiet_NaN();
      for (const bool streams : {false, true})
        REQUIRE_FALSE(
            map_planes(planes_of(values).data(), count, n, {2.0f, 1.0f}, streams, out.data()));
      REQUIRE_FALSE(map_floats(values.data(), 1, n, {2.0f, 1.0f}, out.data()));
      REQUIRE(std::isnan(out[bad]));
      if (bad > 0) REQUIRE(out[bad - 1] == 2.0f * values[bad - 1] + 1.0f);
    }
  }
}

TEST_CASE("values may lie apart, or be one value for all", "[field_kernels]") {
  const std::vector<float> values = some_values(30);
  std::vector<float> out(10);
  REQUIRE(map_floats(values.data() + 2, 3, 9, {}, out.data()));
  for (size_t i = 0; i < 9; ++i)
    REQUIRE(out[i] == values[2 + 3 * i]);
  REQUIRE(map_floats(values.data() + 4, 0, 10, {}, out.data()));
  for (const float x : out)
    REQUIRE(x == values[4]);
}

TEST_CASE("fields become cells, whatever their numbers", "[field_kernels]") {
  for (const int64_t fields : {1, 3, 8, 13, 103, 300}) {
    for (const int64_t cells : {1, 7, 64, 65, 200}) {
      for (const int64_t extra : {0, 5}) {  // of the rows of the output
        const int64_t stride = cells + 3, width = fields + extra;
        const std::vector<float> in = some_values(static_cast<size_t>(fields * stride));
        std::vector<float> out(static_cast<size_t>(cells * width), -1.0f);
        fields_to_cells(in.data(), stride, fields, cells, out.data(), width);
        bool right = true;
        for (int64_t c = 0; c < cells; ++c) {
          for (int64_t f = 0; f < width; ++f) {
            const float expected = f < fields ? in[static_cast<size_t>(f * stride + c)] : -1.0f;
            right = right && out[static_cast<size_t>(c * width + f)] == expected;
          }
        }
        INFO(fields << " fields, " << cells << " cells");
        REQUIRE(right);
      }
    }
  }
}
