// SPDX-License-Identifier: Apache-2.0
#include "verify/fourier.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("coefficients are the sums of their definition, for any length", "[fourier]") {
  const CounterRng random(11);
  for (const size_t length : {1, 2, 3, 5, 8, 12, 18, 20, 37, 60, 97, 250}) {
    INFO(length);
    std::vector<float> values;
    for (size_t j = 0; j < length; ++j)
      values.push_back(static_cast<float>(random.normal(j)));
    std::vector<std::complex<double>> found;
    verify::Fourier(length).transform(values, found);
    REQUIRE(found.size() == length / 2 + 1);
    for (size_t m = 0; m < found.size(); ++m) {
      std::complex<double> wanted = 0.0;
      for (size_t j = 0; j < length; ++j)
        wanted += static_cast<double>(values[j]) *
                  std::polar(1.0 / static_cast<double>(length),
                             -2.0 * std::numbers::pi * static_cast<double>(j * m % length) /
                                 static_cast<double>(length));
      REQUIRE(std::abs(found[m] - wanted) <
              16 * std::numeric_limits<double>::epsilon() * std::sqrt(length));
    }
  }
}
