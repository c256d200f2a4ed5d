// SPDX-License-Identifier: Apache-2.0
// Real spherical harmonics on the unit sphere: a field, its gradient and its Laplacian at any
// point.
//
//   f(λ, φ) = Σ_{m=0}^{N} Σ_{n=m}^{N} P̄_n^m(sin φ) (C_n^m cos mλ + S_n^m sin mλ)
//
// P̄_n^m = √((2n+1) (n-m)!/(n+m)!) P_n^m without the Condon-Shortley phase, so that
// ½∫P̄² dμ = 1 over μ = -1 ... 1: the mean over the sphere of (P̄_n^0)² is 1, and of
// (P̄_n^m cos mλ)² with m > 0 it is ½.
//
// The trap is the pole: 1/cos φ times ∂f/∂λ is 0/0 there. P̄/cos φ has its own recurrence here (the
// factor cos φ is left out from the start), so gradients are exact and finite everywhere; at a pole
// they are the limit along the meridian of the given longitude.
//
// Work is done per circle of latitude, then per longitude: points that share a latitude share all
// Legendre sums, and no table grows with the number of points.
//
// Source: Holmes and Featherstone (2002), J. Geodesy 76, 279-299: standard forward column method.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aifs::data {

// Describes what is known of a field at one point of the unit sphere.
struct FieldValues {
  double value = 0.0;
  double east = 0.0;   // (1/cos φ) ∂f/∂λ
  double north = 0.0;  // ∂f/∂φ
  double laplacian = 0.0;
};

// The latitude-dependent factors of one mode.
struct LegendreValues {
  double value = 0.0;      // P̄
  double east = 0.0;       // m P̄ / cos φ
  double north = 0.0;      // dP̄/dφ
  double laplacian = 0.0;  // -n(n+1) P̄
};

// Coefficients of a field, (modes) each, by SphericalHarmonics::mode().
struct Spectrum {
  std::vector<double> cosine, sine;
};

// One zonal wavenumber m on a circle of latitude: cosine · cos mλ + sine · sin mλ.
struct ZonalWave {
  FieldValues cosine, sine;
};

// Immutable after construction, hence thread-safe.
class SphericalHarmonics {
 public:
  // Tested up to here; near the poles errors grow with the square of the degree.
  static constexpr int64_t kMaxDegree = 319;

  // Triangular truncation at 0 <= max_degree <= kMaxDegree.
  explicit SphericalHarmonics(int64_t max_degree);

  int64_t max_degree() const { return max_degree_; }
  int64_t num_modes() const { return (max_degree_ + 1) * (max_degree_ + 2) / 2; }
  // Position of degree n and zonal wavenumber m, 0 <= m <= n <= max_degree; n runs fastest.
  int64_t mode(int64_t n, int64_t m) const { return m * max_degree_ - m * (m - 1) / 2 + n; }

  // All modes at one latitude; `out` is (modes).
  void legendre(double sin_lat, double cos_lat, std::span<LegendreValues> out) const;

  // Sums over the degrees: the field on the circle of latitude of `legendre` (modes); `waves` is
  // (max_degree + 1), by wavenumber.
  void to_circle(std::span<const LegendreValues> legendre, const Spectrum& spectrum,
                 std::span<ZonalWave> waves) const;

 private:
  void column(int64_t m, double start, double sin_lat, double cos_lat,
              std::span<LegendreValues> out) const;

  int64_t max_degree_;
  std::vector<double> epsilon_;  // (modes) ε_n^m = √((n²-m²)/(4n²-1))
};

// Sums over the wavenumbers: the field at one longitude of the circle.
FieldValues at_longitude(std::span<const ZonalWave> waves, double cos_lon, double sin_lon);

}  // namespace aifs::data
