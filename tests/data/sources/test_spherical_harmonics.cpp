// SPDX-License-Identifier: Apache-2.0
// Oracles: closed forms of low degree, Gauss-Legendre quadrature, and the addition theorems
//   Σ_m w_m P̄² = 2n+1   and   Σ_m w_m ((dP̄/dφ)² + (m P̄/cos φ)²) = n(n+1) (2n+1),
// with w_m = 1 for m = 0 and 2 otherwise.
#include "data/sources/spherical_harmonics.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/catch.h"

using namespace aifs::data;

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct GaussRule {
  std::vector<double> points, weights;
};

// Gauss-Legendre rule on [-1, 1] by Newton's method on the classical recurrence of P_n.
GaussRule gauss_rule(int n) {
  GaussRule rule;
  for (int i = 0; i < n; ++i) {
    double x = std::cos(kPi * (i + 0.75) / (n + 0.5)), slope = 0.0;
    for (int iteration = 0; iteration < 20; ++iteration) {
      double p = 1.0, before = 0.0;
      for (int k = 1; k <= n; ++k) {
        const double next = ((2 * k - 1) * x * p - (k - 1) * before) / k;
        before = p;
        p = next;
      }
      slope = n * (x * p - before) / (x * x - 1.0);
      x -= p / slope;
    }
    rule.points.push_back(x);
    rule.weights.push_back(2.0 / ((1.0 - x * x) * slope * slope));
  }
  return rule;
}

std::vector<LegendreValues> legendre_at(const SphericalHarmonics& harmonics, double latitude_rad) {
  std::vector<LegendreValues> values(static_cast<size_t>(harmonics.num_modes()));
  harmonics.legendre(std::sin(latitude_rad), std::cos(latitude_rad), values);
  return values;
}

// A field that holds one mode: cosine part c, sine part s.
Spectrum single_mode(const SphericalHarmonics& harmonics, int64_t n, int64_t m, double c,
                     double s) {
  const auto num_modes = static_cast<size_t>(harmonics.num_modes());
  Spectrum spectrum{std::vector<double>(num_modes), std::vector<double>(num_modes)};
  spectrum.cosine[static_cast<size_t>(harmonics.mode(n, m))] = c;
  spectrum.sine[static_cast<size_t>(harmonics.mode(n, m))] = s;
  return spectrum;
}

FieldValues field_at(const SphericalHarmonics& harmonics, const Spectrum& spectrum,
                     double latitude_rad, double longitude_rad) {
  std::vector<ZonalWave> waves(static_cast<size_t>(harmonics.max_degree() + 1));
  harmonics.to_circle(legendre_at(harmonics, latitude_rad), spectrum, waves);
  return at_longitude(waves, std::cos(longitude_rad), std::sin(longitude_rad));
}

}  // namespace

TEST_CASE("modes are numbered without gaps, the degree fastest", "[harmonics]") {
  for (const int64_t max_degree : {0, 1, 5, 12}) {
    const SphericalHarmonics harmonics(max_degree);
    int64_t expected = 0;
    for (int64_t m = 0; m <= max_degree; ++m) {
      for (int64_t n = m; n <= max_degree; ++n)
        REQUIRE(harmonics.mode(n, m) == expected++);
    }
    REQUIRE(harmonics.num_modes() == expected);
  }
}

TEST_CASE("Legendre functions of low degree equal their closed forms", "[harmonics]") {
  const SphericalHarmonics harmonics(3);
  for (const double latitude : {-1.4, -0.6, 0.0, 0.3, 1.1, kPi / 2}) {
    const double s = std::sin(latitude), c = std::cos(latitude);
    struct ClosedForm {
      int64_t n, m;
      double value, over_cos, slope;  // P̄, m P̄/cos φ, dP̄/dφ
    };
    const double r = std::sqrt(105.0 / 8.0);
    const ClosedForm cases[] = {
        {0, 0, 1.0, 0.0, 0.0},
        {1, 0, std::sqrt(3.0) * s, 0.0, std::sqrt(3.0) * c},
        {1, 1, std::sqrt(1.5) * c, std::sqrt(1.5), -std::sqrt(1.5) * s},
        {2, 0, std::sqrt(5.0) * (1.5 * s * s - 0.5), 0.0, std::sqrt(5.0) * 3.0 * s * c},
        {2, 1, std::sqrt(7.5) * s * c, std::sqrt(7.5) * s, std::sqrt(7.5) * (c * c - s * s)},
        {2, 2, std::sqrt(15.0 / 8.0) * c * c, std::sqrt(7.5) * c, -std::sqrt(7.5) * s * c},
        {3, 2, r * s * c * c, 2.0 * r * s * c, r * (c * c * c - 2.0 * s * s * c)},
    };
    const std::vector<LegendreValues> values = legendre_at(harmonics, latitude);
    for (const ClosedForm& expected : cases) {
      const LegendreValues& p = values[static_cast<size_t>(harmonics.mode(expected.n, expected.m))];
      REQUIRE(std::abs(p.value - expected.value) < 20 * kEpsilon);
      REQUIRE(std::abs(p.east - expected.over_cos) < 20 * kEpsilon);
      REQUIRE(std::abs(p.north - expected.slope) < 60 * kEpsilon);
    }
  }
}

TEST_CASE("Legendre functions are orthonormal under Gauss quadrature", "[harmonics]") {
  constexpr int64_t kDegree = 30;
  const SphericalHarmonics harmonics(kDegree);
  const GaussRule rule = gauss_rule(kDegree + 2);
  std::vector<std::vector<LegendreValues>> rows;
  for (const double x : rule.points)
    rows.push_back(legendre_at(harmonics, std::asin(x)));
  for (int64_t m = 0; m <= kDegree; ++m) {
    for (int64_t n = m; n <= kDegree; ++n) {
      for (int64_t l = m; l <= n; ++l) {
        double product = 0.0;
        for (size_t i = 0; i < rows.size(); ++i) {
          product += 0.5 * rule.weights[i] *
                     rows[i][static_cast<size_t>(harmonics.mode(n, m))].value *
                     rows[i][static_cast<size_t>(harmonics.mode(l, m))].value;
        }
        REQUIRE(std::abs(product - (n == l ? 1.0 : 0.0)) < 1e-13);
      }
    }
  }
}

TEST_CASE("values and gradients obey the addition theorems, also at and near the poles",
          "[harmonics]") {
  const SphericalHarmonics harmonics(SphericalHarmonics::kMaxDegree);
  constexpr double kTolerance = 22 * SphericalHarmonics::kMaxDegree * kEpsilon;
  for (const double latitude_deg :
       {-90.0, -89.999, -45.0, 0.0, 12.3, 80.0, 89.9, 90.0 - 1e-9, 90.0}) {
    const std::vector<LegendreValues> values = legendre_at(harmonics, latitude_deg * kPi / 180.0);
    for (int64_t n = 0; n <= harmonics.max_degree(); ++n) {
      double squares = 0.0, gradients = 0.0;
      for (int64_t m = 0; m <= n; ++m) {
        const LegendreValues& p = values[static_cast<size_t>(harmonics.mode(n, m))];
        const double weight = m == 0 ? 1.0 : 2.0;
        squares += weight * p.value * p.value;
        gradients += weight * (p.north * p.north + p.east * p.east);
      }
      const auto degree = static_cast<double>(n);
      const double total = 2.0 * degree + 1.0;
      const double total_gradient = degree * (degree + 1.0) * total;
      REQUIRE(std::abs(squares / total - 1.0) < kTolerance);
      if (n > 0) REQUIRE(std::abs(gradients / total_gradient - 1.0) < kTolerance);
    }
  }
}

TEST_CASE("a field is what its harmonics say, with derivatives in both directions", "[harmonics]") {
  const SphericalHarmonics harmonics(4);
  const Spectrum spectrum = single_mode(harmonics, 2, 1, 0.7, -1.3);
  const double r = std::sqrt(7.5);
  for (const double latitude : {-1.2, 0.1, 0.9}) {
    for (const double longitude : {0.0, 1.0, 4.5, -2.0}) {
      const double s = std::sin(latitude), c = std::cos(latitude);
      const double wave = 0.7 * std::cos(longitude) - 1.3 * std::sin(longitude);
      const double wave_slope = -0.7 * std::sin(longitude) - 1.3 * std::cos(longitude);
      const FieldValues field = field_at(harmonics, spectrum, latitude, longitude);
      REQUIRE(std::abs(field.value - r * s * c * wave) < 60 * kEpsilon);
      REQUIRE(std::abs(field.east - r * s * wave_slope) < 60 * kEpsilon);
      REQUIRE(std::abs(field.north - r * (c * c - s * s) * wave) < 60 * kEpsilon);
      REQUIRE(std::abs(field.laplacian + 6.0 * r * s * c * wave) < 360 * kEpsilon);
    }
  }
}

TEST_CASE("at a pole the gradient is one vector, whatever the longitude", "[harmonics]") {
  const SphericalHarmonics harmonics(6);
  for (const int64_t n : {1, 2, 5, 6}) {
    for (const double pole : {-1.0, 1.0}) {
      // a mode of wavenumber 1, the only one whose gradient does not vanish at the pole
      const Spectrum spectrum = single_mode(harmonics, n, 1, 0.4, 0.9);
      double x0 = 0.0, y0 = 0.0;
      for (int i = 0; i < 8; ++i) {
        const double lon = 2.0 * kPi * i / 8;
        const FieldValues field = field_at(harmonics, spectrum, pole * kPi / 2, lon);
        // unit vectors at the pole: east (-sin, cos), north -pole · (cos, sin)
        const double x = -std::sin(lon) * field.east - pole * std::cos(lon) * field.north;
        const double y = std::cos(lon) * field.east - pole * std::sin(lon) * field.north;
        if (i == 0) {
          x0 = x;
          y0 = y;
        }
        REQUIRE(std::hypot(x, y) > 0.1);
        REQUIRE(std::abs(x - x0) < 1e-13);
        REQUIRE(std::abs(y - y0) < 1e-13);
      }
    }
  }
}
