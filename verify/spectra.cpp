// SPDX-License-Identifier: Apache-2.0
#include "verify/spectra.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/check.h"
#include "verify/degrees.h"

namespace aifs::verify {

namespace {

// The mean square over a row of the wave of a coefficient.
double power(std::complex<double> coefficient, size_t wavenumber, size_t length) {
  const bool is_alone = wavenumber == 0 || 2 * wavenumber == length;
  return (is_alone ? 1.0 : 2.0) * std::norm(coefficient);
}

// Sums over the wavenumbers of each degree.
std::vector<double> degree_power(const data::SphericalHarmonics& harmonics,
                                 const data::Spectrum& spectrum) {
  std::vector<double> powers(static_cast<size_t>(harmonics.max_degree()) + 1, 0.0);
  for (int64_t m = 0; m <= harmonics.max_degree(); ++m) {
    for (int64_t n = m; n <= harmonics.max_degree(); ++n) {
      const auto k = static_cast<size_t>(harmonics.mode(n, m));
      const double square =
          spectrum.cosine[k] * spectrum.cosine[k] + spectrum.sine[k] * spectrum.sine[k];
      powers[static_cast<size_t>(n)] += (m == 0 ? 1.0 : 0.5) * square;
    }
  }
  return powers;
}

void add_to(std::vector<double>& sum, const std::vector<double>& values) {
  sum.resize(std::max(sum.size(), values.size()), 0.0);
  for (size_t k = 0; k < values.size(); ++k)
    sum[k] += values[k];
}

}  // namespace

void PowerSpectra::add(const PowerSpectra& other) {
  add_to(forecast, other.forecast);
  add_to(truth, other.truth);
  add_to(error, other.error);
}

void PowerSpectra::divide(double count) {
  for (std::vector<double>* powers : {&forecast, &truth, &error})
    for (double& one : *powers)
      one /= count;
}

FieldSpectra::FieldSpectra(LatitudeRows rows)
    : rows_(std::move(rows)), gaussian_(gaussian_rows(rows_)) {
  std::map<int64_t, size_t> plan_of_length;
  for (int64_t r = 0; r < rows_.num_rows(); ++r) {
    const auto [found, is_new] = plan_of_length.try_emplace(rows_.length(r), plans_.size());
    if (is_new) plans_.emplace_back(static_cast<size_t>(rows_.length(r)));
    plan_of_row_.push_back(found->second);
  }
  const int64_t truncation = rows_.num_rows() / 2 - 1;
  if (gaussian_ && truncation <= data::SphericalHarmonics::kMaxDegree)
    harmonics_.emplace(truncation);
}

FieldSpectra::Rows FieldSpectra::transform(std::span<const float> field) const {
  Rows coefficients(plan_of_row_.size());
  for (size_t r = 0; r < coefficients.size(); ++r) {
    const auto row = field.subspan(static_cast<size_t>(rows_.begin[r]),
                                   static_cast<size_t>(rows_.begin[r + 1] - rows_.begin[r]));
    const bool is_known =
        std::none_of(row.begin(), row.end(), [](float value) { return std::isnan(value); });
    if (is_known) plans_[plan_of_row_[r]].transform(row, coefficients[r]);
  }
  return coefficients;
}

std::optional<PowerSpectra> FieldSpectra::zonal(const Rows& forecast, const Rows& truth,
                                                std::span<const double> weights) const {
  PowerSpectra mean;
  double total = 0.0;
  for (size_t r = 0; r < plan_of_row_.size(); ++r) {
    if (weights[r] == 0.0 || forecast[r].empty() || truth[r].empty()) continue;
    const size_t length = plans_[plan_of_row_[r]].length(), count = forecast[r].size();
    total += weights[r];
    for (std::vector<double>* powers : {&mean.forecast, &mean.truth, &mean.error})
      powers->resize(std::max(powers->size(), count), 0.0);
    for (size_t m = 0; m < count; ++m) {
      mean.forecast[m] += weights[r] * power(forecast[r][m], m, length);
      mean.truth[m] += weights[r] * power(truth[r][m], m, length);
      mean.error[m] += weights[r] * power(forecast[r][m] - truth[r][m], m, length);
    }
  }
  if (total == 0.0) return std::nullopt;
  mean.divide(total);
  return mean;
}

void FieldSpectra::add_row(int64_t row, std::span<const data::LegendreValues> legendre,
                           const Rows& field, data::Spectrum& sum) const {
  const auto r = static_cast<size_t>(row);
  const double weight = 0.5 * gaussian_->weights[r];
  const double first_rad = rows_.first_longitudes_deg[r] * kRadiansOfDegree;
  for (int64_t m = 0; m <= harmonics_->max_degree() && 2 * m < rows_.length(row); ++m) {
    const std::complex<double> wave =
        field[r][static_cast<size_t>(m)] *
        std::polar((m == 0 ? 1.0 : 2.0) * weight, -first_rad * static_cast<double>(m));
    const double cosine = wave.real(), sine = -wave.imag();
    const auto begin = static_cast<size_t>(harmonics_->mode(m, m));
    const auto end = static_cast<size_t>(harmonics_->mode(harmonics_->max_degree(), m));
    for (size_t k = begin; k <= end; ++k) {
      sum.cosine[k] += cosine * legendre[k].value;
      sum.sine[k] += sine * legendre[k].value;
    }
  }
}

std::vector<std::optional<PowerSpectra>> FieldSpectra::by_degree(
    std::span<const Pair> pairs) const {
  AIFS_CHECK(has_degrees(), "the grid is not Gaussian");
  const auto num_modes = static_cast<size_t>(harmonics_->num_modes());
  const data::Spectrum zero{std::vector<double>(num_modes), std::vector<double>(num_modes)};
  std::vector<data::Spectrum> forecasts(pairs.size(), zero), truths(pairs.size(), zero);
  std::vector<bool> is_whole(pairs.size(), true);
  for (size_t p = 0; p < pairs.size(); ++p)
    for (size_t r = 0; r < plan_of_row_.size(); ++r)
      if (pairs[p].forecast[r].empty() || pairs[p].truth[r].empty()) is_whole[p] = false;
  std::vector<data::LegendreValues> legendre(num_modes);
  for (int64_t r = 0; r < rows_.num_rows(); ++r) {
    const double latitude_rad = gaussian_->latitudes_deg[static_cast<size_t>(r)] * kRadiansOfDegree;
    harmonics_->legendre(std::sin(latitude_rad), std::cos(latitude_rad), legendre);
    for (size_t p = 0; p < pairs.size(); ++p) {
      if (!is_whole[p]) continue;
      add_row(r, legendre, pairs[p].forecast, forecasts[p]);
      add_row(r, legendre, pairs[p].truth, truths[p]);
    }
  }
  std::vector<std::optional<PowerSpectra>> found(pairs.size());
  for (size_t p = 0; p < pairs.size(); ++p) {
    if (!is_whole[p]) continue;
    data::Spectrum error = forecasts[p];
    for (size_t k = 0; k < num_modes; ++k) {
      error.cosine[k] -= truths[p].cosine[k];
      error.sine[k] -= truths[p].sine[k];
    }
    found[p] = {degree_power(*harmonics_, forecasts[p]), degree_power(*harmonics_, truths[p]),
                degree_power(*harmonics_, error)};
  }
  return found;
}

}  // namespace aifs::verify
