// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/convert.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

template <class T>
std::vector<T> converted(const std::string& dtype, const std::vector<double>& values,
                         int64_t stride = 1) {
  std::string bytes;
  for (const double value : values)
    bytes += test::encode_item(dtype, value);
  std::vector<T> out((values.size() + static_cast<size_t>(stride) - 1) /
                     static_cast<size_t>(stride));
  convert_items(parse_numpy_type(dtype), std::as_bytes(std::span(bytes)).data(), stride,
                static_cast<int64_t>(out.size()), out.data());
  return out;
}

}  // namespace

TEST_CASE("every type and byte order gives the numbers that were stored", "[zarr][convert]") {
  const std::vector<double> small{0, 1, 2, 100, 127};
  const std::vector<double> with_sign{-128, -1, 0, 1, 127};
  for (const std::string order : {"<", ">"}) {
    for (const char* type : {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"}) {
      const std::string dtype = order + type;
      INFO(dtype);
      const auto& values = type[0] == 'u' ? small : with_sign;
      REQUIRE(converted<double>(dtype, values) == values);
      REQUIRE(converted<float>(dtype, values) == std::vector<float>(values.begin(), values.end()));
    }
    for (const char* type : {"i2", "i8", "u1", "u8", "M8[s]", "m8[us]"}) {
      REQUIRE(converted<int64_t>(order + type, small) ==
              std::vector<int64_t>(small.begin(), small.end()));
    }
  }
  REQUIRE(converted<double>("|b1", {0, 1, 255}) == std::vector<double>{0, 1, 1});
}

TEST_CASE("the extremes of wide integers survive", "[zarr][convert]") {
  const int64_t extremes[] = {INT64_MIN, INT64_MAX};
  int64_t out[2];
  convert_items(parse_numpy_type("<i8"), std::as_bytes(std::span(extremes)).data(), 1, 2, out);
  REQUIRE((out[0] == INT64_MIN && out[1] == INT64_MAX));
}

TEST_CASE("a stride skips items, and stride 0 repeats one", "[zarr][convert]") {
  REQUIRE(converted<float>("<i2", {1, 2, 3, 4, 5}, 2) == std::vector<float>{1, 3, 5});
  const float one = 1.5F;
  double out[3];
  convert_items(parse_numpy_type("<f4"), std::as_bytes(std::span(&one, 1)).data(), 0, 3, out);
  REQUIRE((out[0] == 1.5 && out[2] == 1.5));
}

TEST_CASE("floats are not silently cut to integers", "[zarr][convert]") {
  REQUIRE_THROWS_WITH(converted<int64_t>("<f4", {1.5}), ContainsSubstring("float32"));
}

TEST_CASE("NaN stays NaN and infinity infinity", "[zarr][convert]") {
  for (const char* dtype : {"<f2", ">f4", "<f8"}) {
    REQUIRE(std::isnan(converted<float>(dtype, {std::nan("")})[0]));
  }
  REQUIRE(std::isinf(converted<float>("<f8", {std::numeric_limits<double>::infinity()})[0]));
}

#ifdef __FLT16_MAX__
TEST_CASE("all halves equal those of the compiler", "[zarr][convert]") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(half));
    const float got = half_to_float(half);
    if (std::isnan(expected) ? !std::isnan(got)
                             : std::bit_cast<uint32_t>(expected) != std::bit_cast<uint32_t>(got)) {
      FAIL("half " << bits << " is " << expected << ", not " << got);
    }
  }
}
#endif
