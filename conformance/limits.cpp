// SPDX-License-Identifier: Apache-2.0
#include "conformance/limits.h"

#include <algorithm>

namespace aifs::conformance {

namespace {

constexpr double kGradientFloor = 1e-13;
constexpr int64_t kFirstSteps = 20;
constexpr double kFirstBf16 = 3e-3, kLaterBf16 = 1e-2;
constexpr double kSpreads = 10.0, kLastPlaces = 4.0;
constexpr double kEpsilon32 = 0x1p-23;
constexpr double kRoundingRatio = 0x1p-29;  // of fp64 and fp32

}  // namespace

double gradient_scale_f64(double largest_of_tensor, double largest_of_model) {
  constexpr double kSmallest = 1e-300;  // where a model has no gradient at all
  return std::max({largest_of_tensor, kGradientFloor / kGradientF64 * largest_of_model, kSmallest});
}

double bf16_loss_limit(int64_t step) {
  return step < kFirstSteps ? kFirstBf16 : kLaterBf16;
}

template <class Real>
double norm_slope(const std::vector<Real>& raw, const std::vector<Real>& normalised) {
  if (raw.empty() || raw.size() != normalised.size()) return 1.0;
  const auto [least, most] = std::minmax_element(raw.begin(), raw.end());
  const auto [least_of_norm, most_of_norm] =
      std::minmax_element(normalised.begin(), normalised.end());
  const double range = static_cast<double>(*most) - static_cast<double>(*least);
  const double stretched = static_cast<double>(*most_of_norm) - static_cast<double>(*least_of_norm);
  return range > 0.0 ? stretched / range : 1.0;
}

template double norm_slope(const std::vector<float>&, const std::vector<float>&);
template double norm_slope(const std::vector<double>&, const std::vector<double>&);

double raw_attribute_limit(const std::string& attribute, int64_t order) {
  if (attribute == "EdgeLength") return 1e-6;
  if (attribute == "Azimuth") return 2e-5;
  if (attribute == "EdgeDirection") return 1e-4;
  if (attribute == "DirectionalHarmonics") return 1e-4 * static_cast<double>(order);
  return 1e-5;
}

AttributeLimits attribute_limits(const std::string& attribute, double slope) {
  const double least = attribute == "EdgeLength"      ? 5e-5
                       : attribute == "EdgeDirection" ? 2e-4
                       : attribute == "Azimuth"       ? 1e-4
                                                      : 1e-5;
  const double rounding = raw_attribute_limit(attribute) * slope;
  return {std::max(least, rounding), std::max(1e-12, kRoundingRatio * rounding)};
}

double spread_limit(double spread, double largest) {
  return std::max(kSpreads * spread, kLastPlaces * kEpsilon32 * largest);
}

}  // namespace aifs::conformance
