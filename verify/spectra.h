// SPDX-License-Identifier: Apache-2.0
// Power spectra of fields, by zonal wavenumber and by degree of spherical harmonics. Powers add up
// to the mean square of a field: of the rows, each counting with the weight of its band, or of the
// sphere.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/sources/spherical_harmonics.h"
#include "verify/fourier.h"
#include "verify/latitude_rows.h"

namespace aifs::verify {

// Powers of forecast, truth and their difference, by wavenumber.
struct PowerSpectra {
  std::vector<double> forecast, truth, error;

  // Adds powers, of fewer wavenumbers it may be.
  void add(const PowerSpectra& other);
  void divide(double count);
};

// The transform of fields of one grid. Immutable after construction, hence thread-safe.
class FieldSpectra {
 public:
  explicit FieldSpectra(LatitudeRows rows);

  const LatitudeRows& rows() const { return rows_; }
  // True for Gaussian grids, on which the integral over degrees is exact, up to N320 or O320.
  bool has_degrees() const { return harmonics_.has_value(); }

  // The Fourier coefficients of each row of a field (N); none of rows with a NaN.
  using Rows = std::vector<std::vector<std::complex<double>>>;
  Rows transform(std::span<const float> field) const;

  // By zonal wavenumber, up to half the longest row: means over rows, by `weights` (rows). Rows
  // that one field lacks, or of weight 0, do not count; nothing if none does. Wavenumbers beyond
  // half a row have no power there.
  std::optional<PowerSpectra> zonal(const Rows& forecast, const Rows& truth,
                                    std::span<const double> weights) const;

  // By degree, up to one less than the rows between a pole and the equator; in the order of the
  // pairs. Nothing for a pair with a row that one field lacks. Needs has_degrees().
  struct Pair {
    const Rows &forecast, &truth;
  };
  std::vector<std::optional<PowerSpectra>> by_degree(std::span<const Pair> pairs) const;

 private:
  void add_row(int64_t row, std::span<const data::LegendreValues> legendre, const Rows& field,
               data::Spectrum& sum) const;

  LatitudeRows rows_;
  std::vector<size_t> plan_of_row_;
  std::vector<Fourier> plans_;
  std::optional<GaussianRows> gaussian_;
  std::optional<data::SphericalHarmonics> harmonics_;
};

}  // namespace aifs::verify
