// SPDX-License-Identifier: Apache-2.0
// Oracles: Parseval's identity, and fields of which all waves are known.
#include "verify/spectra.h"

#include <cmath>
#include <numeric>

#include "core/rng.h"
#include "graph/nodes/gaussian_grid.h"
#include "tests/support/catch.h"
#include "verify/degrees.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

struct Grid {
  graph::Coordinates points;
  FieldSpectra spectra;

  explicit Grid(const char* name, double first_longitude_deg = 0.0)
      : points(shifted(name, first_longitude_deg)),
        spectra(*latitude_rows(points.lat_deg, points.lon_deg)) {}

  static graph::Coordinates shifted(const char* name, double first_longitude_deg) {
    graph::Coordinates points = graph::gaussian_coordinates(graph::parse_gaussian_grid(name));
    for (double& longitude : points.lon_deg)
      longitude += first_longitude_deg;
    return points;
  }
  // The field of a spectrum of harmonics.
  std::vector<float> field(const data::SphericalHarmonics& harmonics,
                           const data::Spectrum& spectrum) const {
    std::vector<data::LegendreValues> legendre(static_cast<size_t>(harmonics.num_modes()));
    std::vector<data::ZonalWave> waves(static_cast<size_t>(harmonics.max_degree()) + 1);
    std::vector<float> values;
    for (size_t i = 0; i < points.lat_deg.size(); ++i) {
      const double lat = points.lat_deg[i] * kRadiansOfDegree;
      const double lon = points.lon_deg[i] * kRadiansOfDegree;
      if (i == 0 || points.lat_deg[i] != points.lat_deg[i - 1]) {
        harmonics.legendre(std::sin(lat), std::cos(lat), legendre);
        harmonics.to_circle(legendre, spectrum, waves);
      }
      values.push_back(
          static_cast<float>(data::at_longitude(waves, std::cos(lon), std::sin(lon)).value));
    }
    return values;
  }
};

data::Spectrum random_spectrum(const data::SphericalHarmonics& harmonics, uint64_t seed) {
  const CounterRng random(seed);
  data::Spectrum spectrum;
  for (uint64_t k = 0; k < static_cast<uint64_t>(harmonics.num_modes()); ++k) {
    spectrum.cosine.push_back(random.normal(2 * k));
    spectrum.sine.push_back(random.normal(2 * k + 1));
  }
  for (int64_t n = 0; n <= harmonics.max_degree(); ++n)  // sin 0 is nothing
    spectrum.sine[static_cast<size_t>(harmonics.mode(n, 0))] = 0.0;
  return spectrum;
}

}  // namespace

TEST_CASE("powers by degree are those of the harmonics that a field is made of", "[spectra]") {
  for (const auto& [name, shift] :
       std::vector<std::pair<const char*, double>>{{"o16", 0.0}, {"f16", 10.0}, {"n32", 0.0}}) {
    INFO(name);
    const Grid grid(name, shift);
    REQUIRE(grid.spectra.has_degrees());
    const int64_t truncation = grid.spectra.rows().num_rows() / 2 - 1;
    const data::SphericalHarmonics harmonics(truncation);
    const data::Spectrum a = random_spectrum(harmonics, 1), b = random_spectrum(harmonics, 2);
    const auto first = grid.spectra.transform(grid.field(harmonics, a));
    const auto second = grid.spectra.transform(grid.field(harmonics, b));
    const std::vector<FieldSpectra::Pair> pairs{{first, second}};
    const auto found = grid.spectra.by_degree(pairs);
    REQUIRE(found[0]);
    REQUIRE(found[0]->forecast.size() == static_cast<size_t>(truncation) + 1);
    for (int64_t n = 0; n <= truncation; ++n) {
      double own = 0.0, other = 0.0, error = 0.0;
      for (int64_t m = 0; m <= n; ++m) {
        const auto k = static_cast<size_t>(harmonics.mode(n, m));
        const double factor = m == 0 ? 1.0 : 0.5;
        own += factor * (std::pow(a.cosine[k], 2) + std::pow(a.sine[k], 2));
        other += factor * (std::pow(b.cosine[k], 2) + std::pow(b.sine[k], 2));
        error +=
            factor * (std::pow(a.cosine[k] - b.cosine[k], 2) + std::pow(a.sine[k] - b.sine[k], 2));
      }
      const auto at = static_cast<size_t>(n);
      REQUIRE(found[0]->forecast[at] == Approx(own).epsilon(1e-5));
      REQUIRE(found[0]->truth[at] == Approx(other).epsilon(1e-5));
      REQUIRE(found[0]->error[at] == Approx(error).epsilon(1e-5));
    }
  }
}

TEST_CASE("zonal powers add up to the mean square of the rows", "[spectra]") {
  const Grid grid("o8");
  const CounterRng random(5);
  std::vector<float> forecast, truth;
  for (uint64_t i = 0; i < grid.points.lat_deg.size(); ++i) {
    forecast.push_back(static_cast<float>(random.normal(2 * i)));
    truth.push_back(static_cast<float>(random.normal(2 * i + 1)));
  }
  std::vector<double> weights(16, 0.0);
  weights[3] = 1.0, weights[4] = 3.0;
  double own = 0.0, error = 0.0;
  const LatitudeRows& rows = grid.spectra.rows();
  for (const size_t r : {size_t{3}, size_t{4}}) {
    const auto length = static_cast<double>(rows.length(static_cast<int64_t>(r)));
    for (auto i = static_cast<size_t>(rows.begin[r]); i < static_cast<size_t>(rows.begin[r + 1]);
         ++i) {
      own += weights[r] / 4 / length * std::pow(static_cast<double>(forecast[i]), 2);
      error += weights[r] / 4 / length *
               std::pow(static_cast<double>(forecast[i]) - static_cast<double>(truth[i]), 2);
    }
  }
  const auto found =
      grid.spectra.zonal(grid.spectra.transform(forecast), grid.spectra.transform(truth), weights);
  REQUIRE(found);
  const auto total = [](const std::vector<double>& powers) {
    return std::accumulate(powers.begin(), powers.end(), 0.0);
  };
  REQUIRE(total(found->forecast) == Approx(own).epsilon(1e-12));
  REQUIRE(total(found->error) == Approx(error).epsilon(1e-12));
}

TEST_CASE("a wave has power at its wavenumber only", "[spectra]") {
  const Grid grid("f8", 3.0);
  std::vector<float> wave;
  for (const double longitude : grid.points.lon_deg)
    wave.push_back(static_cast<float>(2.0 + 3.0 * std::cos(5 * longitude * kRadiansOfDegree)));
  const auto rows = grid.spectra.transform(wave);
  const auto found = grid.spectra.zonal(rows, rows, std::vector<double>(16, 1.0));
  for (size_t m = 0; m < found->forecast.size(); ++m) {
    const double wanted = m == 0 ? 4.0 : m == 5 ? 4.5 : 0.0;
    REQUIRE(found->forecast[m] == Approx(wanted).epsilon(1e-6).margin(1e-12));
    REQUIRE(found->error[m] == 0.0);
  }
}

TEST_CASE("rows with a missing value do not count, nor do degrees of such fields", "[spectra]") {
  const Grid grid("o8");
  std::vector<float> whole(grid.points.lat_deg.size(), 2.0f), broken = whole;
  broken[0] = NAN;
  const auto a = grid.spectra.transform(whole), b = grid.spectra.transform(broken);
  std::vector<double> weights(16, 1.0);
  REQUIRE(grid.spectra.zonal(a, b, weights)->truth[0] == Approx(4.0));
  std::fill(weights.begin() + 1, weights.end(), 0.0);
  REQUIRE_FALSE(grid.spectra.zonal(a, b, weights));
  const std::vector<FieldSpectra::Pair> pairs{{a, b}, {a, a}};
  const auto found = grid.spectra.by_degree(pairs);
  REQUIRE_FALSE(found[0]);
  REQUIRE(found[1]->truth[0] == Approx(4.0));
}

TEST_CASE("grids that are not Gaussian have no degrees", "[spectra]") {
  const std::vector<double> latitudes{10, 10, -10, -10}, longitudes{0, 180, 0, 180};
  REQUIRE_FALSE(FieldSpectra(*latitude_rows(latitudes, longitudes)).has_degrees());
}
