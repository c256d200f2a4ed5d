// SPDX-License-Identifier: Apache-2.0
#include "data/fields/moments.h"

#include <numeric>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

constexpr int64_t kVariables = 3, kValues = 7, kRows = 100;

float value(int64_t row, int64_t variable, int64_t i) {
  if (variable == 2 && (row + i) % 5 == 0) return std::numeric_limits<float>::quiet_NaN();
  return 1000.0f * static_cast<float>(variable) +
         std::sin(0.7f * static_cast<float>(row) + static_cast<float>(i));
}

void fields(int64_t row, std::span<float> out) {
  for (int64_t v = 0; v < kVariables; ++v)
    for (int64_t i = 0; i < kValues; ++i)
      out[static_cast<size_t>(v * kValues + i)] = value(row, v, i);
}

// Straight sums in long double over a list of numbers.
struct Direct {
  long double mean = 0, stdev = 0, minimum = 0, maximum = 0;
  explicit Direct(const std::vector<float>& x) {
    mean = std::accumulate(x.begin(), x.end(), 0.0L) / static_cast<long double>(x.size());
    long double squares = 0;
    for (const float one : x)
      squares += (one - mean) * (one - mean);
    stdev = std::sqrt(squares / static_cast<long double>(x.size()));
    minimum = *std::min_element(x.begin(), x.end());
    maximum = *std::max_element(x.begin(), x.end());
  }
};

void check_equal(const Statistics& s, size_t v, const Direct& direct) {
  CHECK(s.mean[v] == Approx(static_cast<double>(direct.mean)).epsilon(1e-13).margin(1e-15));
  CHECK(s.stdev[v] == Approx(static_cast<double>(direct.stdev)).epsilon(1e-12));
  CHECK(s.minimum[v] == static_cast<double>(direct.minimum));
  CHECK(s.maximum[v] == static_cast<double>(direct.maximum));
}

}  // namespace

TEST_CASE("statistics and tendencies are those of plain sums, without missing dates and NaN",
          "[data]") {
  const StatisticsWindow window{10, 90, {17, 18, 64}, {1, 4}};
  const auto is_used = [](int64_t row) {
    return row >= 10 && row < 90 && row != 17 && row != 18 && row != 64;
  };
  const ComputedStatistics computed =
      compute_statistics<float>(window, {kVariables, kValues}, fields, 3, nullptr);
  REQUIRE(computed.tendencies.size() == 2);
  for (int64_t v = 0; v < kVariables; ++v) {
    std::vector<float> all;
    std::vector<std::vector<float>> differences(2);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < kValues; ++i) {
        const float x = value(row, v, i);
        if (is_used(row) && x == x) all.push_back(x);
        for (size_t k = 0; k < 2; ++k) {
          const int64_t earlier = row - window.lags[k];
          if (!is_used(row) || !is_used(earlier)) continue;
          const float difference = x - value(earlier, v, i);
          if (difference == difference) differences[k].push_back(difference);
        }
      }
    }
    const auto at = static_cast<size_t>(v);
    CAPTURE(v);
    check_equal(computed.all, at, Direct(all));
    for (size_t k = 0; k < 2; ++k)
      check_equal(computed.tendencies[k], at, Direct(differences[k]));
  }
}

TEST_CASE("the bits of statistics do not depend on the number of threads", "[data]") {
  const StatisticsWindow window{0, kRows, {}, {2}};
  const auto compute = [&](int64_t threads) {
    return compute_statistics<float>(window, {kVariables, kValues}, fields, threads, nullptr);
  };
  const ComputedStatistics one = compute(1), many = compute(5);
  CHECK(one.all.mean == many.all.mean);
  CHECK(one.all.stdev == many.all.stdev);
  CHECK(one.tendencies[0].mean == many.tendencies[0].mean);
  CHECK(one.tendencies[0].stdev == many.tendencies[0].stdev);
}

TEST_CASE("a variable without a number has NaN statistics", "[data]") {
  const StatisticsWindow window{0, 3, {}, {}};
  const ComputedStatistics computed = compute_statistics<double>(
      window, {1, 2}, [](int64_t, std::span<double> out) { out[0] = out[1] = std::nan(""); }, 1,
      nullptr);
  for (const auto& part : {computed.all.mean, computed.all.stdev, computed.all.minimum})
    CHECK(std::isnan(part[0]));
}

TEST_CASE("doubles keep their precision", "[data]") {
  const StatisticsWindow window{0, 2, {}, {1}};
  const ComputedStatistics computed = compute_statistics<double>(
      window, {1, 1},
      [](int64_t row, std::span<double> out) { out[0] = 1e9 + 1e-3 * static_cast<double>(row); }, 1,
      nullptr);
  CHECK(computed.tendencies[0].mean[0] == Approx(1e-3).epsilon(1e-3));
}

TEST_CASE("the usual period of statistics ends as Anemoi has it", "[data]") {
  const auto end_of = [](const char* first, int64_t count, int64_t step_s) {
    std::vector<int64_t> dates_s;
    for (int64_t i = 0; i < count; ++i)
      dates_s.push_back(parse_date(first) + i * step_s);
    return format_date(default_statistics_end(dates_s));
  };
  // The first from the attributes of a dataset of ECMWF, the others by the rule.
  CHECK(end_of("2020-01-01", 2924, 21600) == "2021-08-07T12:00:00");
  CHECK(end_of("2020-01-01", 9, 86400) == "2020-01-07T00:00:00");
  CHECK(end_of("2020-01-01", 1, 86400) == "2020-01-01T00:00:00");
  CHECK(end_of("2000-01-01", 4383, 86400) == "2010-12-31T00:00:00");   // 12 years: without the last
  CHECK(end_of("1990-01-01", 11323, 86400) == "2017-12-31T00:00:00");  // 31 years: without three
}
