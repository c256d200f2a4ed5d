// SPDX-License-Identifier: Apache-2.0
#include "data/sources/spherical_harmonics.h"

#include <cmath>

#include "core/check.h"

namespace aifs::data {

namespace {

void add_scaled(FieldValues& sum, const FieldValues& term, double factor) {
  sum.value += term.value * factor;
  sum.east += term.east * factor;
  sum.north += term.north * factor;
  sum.laplacian += term.laplacian * factor;
}

}  // namespace

SphericalHarmonics::SphericalHarmonics(int64_t max_degree) : max_degree_(max_degree) {
  AIFS_CHECK(max_degree >= 0 && max_degree <= kMaxDegree, "degree ", max_degree);
  for (int64_t m = 0; m <= max_degree; ++m) {
    for (int64_t n = m; n <= max_degree; ++n) {
      const auto numerator = static_cast<double>(n * n - m * m);
      epsilon_.push_back(std::sqrt(numerator / static_cast<double>(4 * n * n - 1)));
    }
  }
}

// One wavenumber, degree by degree. The recurrence runs on q = P̄/cos φ (on P̄ itself for m = 0):
//   ε_n q_n = sin φ q_{n-1} - ε_{n-1} q_{n-2},   dP̄_n/dφ = -n sin φ q_n + (2n+1) ε_n q_{n-1}.
void SphericalHarmonics::column(int64_t m, double start, double sin_lat, double cos_lat,
                                std::span<LegendreValues> out) const {
  const double scale = m == 0 ? 1.0 : cos_lat;
  double q = start, previous = 0.0;
  for (int64_t n = m; n <= max_degree_; ++n) {
    const auto k = static_cast<size_t>(mode(n, m));
    if (n > m) {
      const double next = (sin_lat * q - epsilon_[k - 1] * previous) / epsilon_[k];
      previous = q;
      q = next;
    }
    const auto degree = static_cast<double>(n);
    LegendreValues& values = out[k];
    values.value = scale * q;
    values.east = static_cast<double>(m) * q;
    values.north = -degree * sin_lat * q + (2.0 * degree + 1.0) * epsilon_[k] * previous;
    values.laplacian = -degree * (degree + 1.0) * values.value;
  }
}

void SphericalHarmonics::legendre(double sin_lat, double cos_lat,
                                  std::span<LegendreValues> out) const {
  AIFS_CHECK(static_cast<int64_t>(out.size()) == num_modes(), out.size(), " modes");
  column(0, 1.0, sin_lat, cos_lat, out);
  double sectoral = std::sqrt(1.5);  // P̄_m^m / cos φ
  for (int64_t m = 1; m <= max_degree_; ++m) {
    column(m, sectoral, sin_lat, cos_lat, out);
    const auto order = static_cast<double>(m);
    sectoral *= cos_lat * std::sqrt((2.0 * order + 3.0) / (2.0 * order + 2.0));
  }
  // For m = 0 the formula of column() would have to be divided by cos φ.
  out[0].north = 0.0;
  for (int64_t n = 1; n <= max_degree_; ++n) {
    const double factor = std::sqrt(static_cast<double>(n * (n + 1)));
    out[static_cast<size_t>(mode(n, 0))].north =
        factor * out[static_cast<size_t>(mode(n, 1))].value;
  }
}

void SphericalHarmonics::to_circle(std::span<const LegendreValues> legendre,
                                   const Spectrum& spectrum, std::span<ZonalWave> waves) const {
  const auto modes = static_cast<size_t>(num_modes());
  AIFS_CHECK(legendre.size() == modes && spectrum.cosine.size() == modes &&
                 spectrum.sine.size() == modes &&
                 static_cast<int64_t>(waves.size()) == max_degree_ + 1,
             "sizes differ from the truncation at degree ", max_degree_);
  size_t k = 0;
  for (int64_t m = 0; m <= max_degree_; ++m) {
    ZonalWave wave;
    for (int64_t n = m; n <= max_degree_; ++n, ++k) {
      const LegendreValues& p = legendre[k];
      const double c = spectrum.cosine[k], s = spectrum.sine[k];
      wave.cosine.value += p.value * c;
      wave.sine.value += p.value * s;
      wave.cosine.east += p.east * s;  // ∂/∂λ turns (c, s) into m (s, -c)
      wave.sine.east -= p.east * c;
      wave.cosine.north += p.north * c;
      wave.sine.north += p.north * s;
      wave.cosine.laplacian += p.laplacian * c;
      wave.sine.laplacian += p.laplacian * s;
    }
    waves[static_cast<size_t>(m)] = wave;
  }
}

FieldValues at_longitude(std::span<const ZonalWave> waves, double cos_lon, double sin_lon) {
  FieldValues sum;
  double cosine = 1.0, sine = 0.0;  // of mλ, by the addition theorem
  for (const ZonalWave& wave : waves) {
    add_scaled(sum, wave.cosine, cosine);
    add_scaled(sum, wave.sine, sine);
    const double next = cosine * cos_lon - sine * sin_lon;
    sine = sine * cos_lon + cosine * sin_lon;
    cosine = next;
  }
  return sum;
}

}  // namespace aifs::data
