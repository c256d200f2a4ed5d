// SPDX-License-Identifier: Apache-2.0
// A dataset that needs no files: Rossby waves on a sphere, exact at every place and any date.
//
// Every level is a solution of the barotropic vorticity equation, linearised about solid-body
// rotation (angular velocity ω of the air, Ω of the planet, radius a):
//
//   ∂ζ/∂t = -ω ∂ζ/∂λ - 2(Ω+ω)/a² ∂ψ/∂λ,    ζ = ∇²ψ,
//   ψ = -a²ω sin φ + Σ_{n,m} A_nm P̄_n^m(sin φ) cos(m (λ - c_n t) + phase_nm),
//   c_n = ω - 2(Ω+ω) / (n(n+1)).
//
// Inserting one mode, with ζ_nm = -n(n+1)/a² ψ_nm and ∂/∂t = -c_n ∂/∂λ, gives c_n. Each degree
// drifts at its own rate: the waves disperse, and no rotation of the whole field is a forecast.
// Time counts from 2000-01-01T00:00:00, not from the start of the axis: datasets over different
// periods belong to one truth.
//
// Variables (sorted by name, as Anemoi does):
//   z_<level>  m² s⁻²  mean + f0 ψ, f0 = 10⁻⁴ s⁻¹ in both hemispheres
//   u_<level>  m s⁻¹   -(1/a) ∂ψ/∂φ                v_<level>  m s⁻¹  1/(a cos φ) ∂ψ/∂λ
//   vo_<level> s⁻¹     ζ                           ke_<first level>  m² s⁻²  (u² + v²)/2
//   cos_latitude sin_latitude cos_longitude sin_longitude cos_julian_day sin_julian_day
// The last six are Anemoi's computed forcings; ke is meant as diagnostic, the others as prognostic.
//
// At a pole u and v are the limit along the meridian of the longitude given for the point.
// Source of waves and rates: Haurwitz (1940), J. Marine Research 3, 254-267.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/sources/analytic_options.h"
#include "data/sources/spherical_harmonics.h"

namespace aifs::data {

// The flow at one point, fp64.
struct FlowState {
  double streamfunction_m2_s = 0.0;
  double u_m_s = 0.0, v_m_s = 0.0;
  double vorticity = 0.0;  // s⁻¹
};

// The flow of one level. Immutable, hence thread-safe.
class RossbyWaves {
 public:
  // Amplitudes are normal numbers times n^-decay, scaled together to the level's wave_wind; phases
  // are uniform. The random numbers depend on seed, level number, n and m only.
  RossbyWaves(const SphericalHarmonics& harmonics, const AnalyticOptions& options,
              const AnalyticLevel& level);

  // Coefficients of the waves' streamfunction, m² s⁻¹, at a date.
  Spectrum spectrum(int64_t date_s) const;
  // From the waves' streamfunction at a point to the whole flow there.
  FlowState flow(const FieldValues& waves, double sin_lat, double cos_lat) const;

 private:
  double rotation_rad_s_;  // ω
  std::vector<double> amplitude_m2_s_, phase_rad_;
  std::vector<double> frequency_rad_s_;  // (modes) m c_n
};

class AnalyticDataset : public Dataset {
 public:
  // Cells at these latitudes and longitudes, (N) each; `grids` as in DatasetInfo. Statistics are
  // those of at most `statistics_rows` dates, evenly spread over the statistics period, both ends
  // included, over all cells without weights, in fp64; tendencies compare the same dates with exact
  // later states. Throws ConfigError for options that validate() refuses, DataError for coordinates
  // that are no place on the sphere.
  AnalyticDataset(AnalyticOptions options, std::vector<double> latitudes_deg,
                  std::vector<double> longitudes_deg, std::vector<int64_t> grids = {});

  const DatasetInfo& info() const override { return info_; }

  // Any row, in any order, by any number of threads: the bits are always the same.
  void read(int64_t row, NodeRange nodes, std::span<float> out) const override;

  // As read(), at any date, on the axis or beyond: the truth of a forecast. Thread-safe.
  void evaluate(int64_t date_s, NodeRange nodes, std::span<float> out) const;

  // The flow of options.levels[level_index] at any point. Thread-safe.
  FlowState flow(int64_t level_index, int64_t date_s, double latitude_deg,
                 double longitude_deg) const;

 private:
  enum class Quantity {
    kGeopotential,
    kU,
    kV,
    kVorticity,
    kKineticEnergy,
    kCosLatitude,
    kSinLatitude,
    kCosLongitude,
    kSinLongitude,
    kCosJulianDay,
    kSinJulianDay
  };
  // Describes what a variable is, and of which level if it has one.
  struct Column {
    Quantity quantity;
    size_t level = 0;
  };
  struct Place {
    double cos_lat, sin_lat, cos_lon, sin_lon;
  };
  struct Season {
    double cos_julian_day, sin_julian_day;
  };

  static Place place_at(double latitude_deg, double longitude_deg);
  static Season season_of(int64_t date_s);
  void name_columns();
  void sample_statistics();
  double value(const Column& column, const Place& place, const Season& season,
               std::span<const FlowState> flows) const;
  template <class T>
  void fill(int64_t date_s, NodeRange nodes, std::span<T> out) const;

  AnalyticOptions options_;
  SphericalHarmonics harmonics_;
  std::vector<RossbyWaves> levels_;
  std::vector<Column> columns_;  // (V)
  std::vector<Place> places_;    // (N)
  DatasetInfo info_;
};

}  // namespace aifs::data
