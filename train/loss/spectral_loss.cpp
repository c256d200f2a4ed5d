// SPDX-License-Identifier: Apache-2.0
#include "train/loss/spectral_loss.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/check.h"
#include "train/loss/ensemble_loss.h"
#include "train/loss/member_pairs.h"

namespace aifs::train {

namespace {

constexpr int64_t kRows = 3, kColumns = 4;  // axes of (B, T, E, rows, columns, V)
constexpr double kAmseEpsilon = 1e-8;

double machine_epsilon(at::ScalarType type) {
  return type == at::kDouble ? std::numeric_limits<double>::epsilon()
                             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

at::Tensor power(const at::Tensor& c) {
  if (!c.is_complex()) return c.square();
  return at::real(c).square() + at::imag(c).square();
}

// Re(a conj(b)).
at::Tensor cross_power(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_complex()) return a * b;
  return at::real(a) * at::real(b) + at::imag(a) * at::imag(b);
}

// (B, T, E, rows, columns, V) -> (B, T, E, rows * columns, V).
at::Tensor as_grid(const at::Tensor& x) {
  return x.flatten(kRows, kColumns);
}

void require_waves(const SpectralTransform& transform, bool ignore_nans, const std::string& path) {
  if (ignore_nans) {
    throw ConfigError(path + ".ignore_nans", "a transform of a field with NaN is not defined");
  }
  if (transform.on_sphere() && transform.subgrid) {
    throw ConfigError(path + ".subgrid",
                      "is for rectangles; a transform on the sphere needs it all");
  }
}

// Adjusted mean squared error per degree.
at::Tensor amse(const at::Tensor& p, const at::Tensor& y) {
  const at::Tensor s_p = power(p).sum(kColumns), s_y = power(y).sum(kColumns);
  const at::Tensor a_p = (s_p + kAmseEpsilon).sqrt(), a_y = (s_y + kAmseEpsilon).sqrt();
  const at::Tensor coherence = cross_power(p, y).sum(kColumns) / (a_p * a_y + kAmseEpsilon);
  return (a_p - a_y).square() + 2.0 * at::maximum(s_p, s_y) * (1.0 - coherence);
}

}  // namespace

SpectralLoss::SpectralLoss(SpectralKind kind, SpectralTransform transform,
                           ElementaryOptions options, const std::string& path)
    : ElementaryLoss(std::move(options)), kind_(kind), transform_(std::move(transform)) {
  require_waves(transform_, ignore_nans(), path);
  const bool by_degree = kind == SpectralKind::kAmse || kind == SpectralKind::kPower;
  if (by_degree && !transform_.on_sphere()) {
    throw ConfigError(path + ".transform", "this loss is per degree, it needs the sphere",
                      "use octahedral_sht or reduced_sht");
  }
}

at::Tensor SpectralLoss::value(const Fields& fields) const {
  const at::Tensor p = transform_(fields.prediction), y = transform_(fields.target);
  const double epsilon = machine_epsilon(fields.prediction.scalar_type());
  const auto reduced = [&](const at::Tensor& field) {
    return reduce_field(apply_scalers(field, fields.scalers, fields.nodes), fields.over_variables,
                        fields.nodes);
  };
  switch (kind_) {
    case SpectralKind::kAmse:
      return reduced(amse(p, y));
    case SpectralKind::kPower:
      return reduced((power(p).sum(kColumns) - power(y).sum(kColumns)).square());
    case SpectralKind::kLogDistance: {
      const at::Tensor distance = (power(y) + epsilon).log() - (power(p) + epsilon).log();
      return (reduced(as_grid(distance.square())) + epsilon).sqrt();
    }
    case SpectralKind::kCorrelation: {
      const at::Tensor size = (power(p) * power(y) + epsilon).sqrt();
      return reduced(as_grid(1.0 - (cross_power(p, y) / size).clamp(-1.0, 1.0)));
    }
  }
  throw Error("no such spectral loss");
}

SpectralCrpsLoss::SpectralCrpsLoss(double alpha, bool of_moduli, SpectralTransform transform,
                                   ElementaryOptions options, const std::string& path)
    : ElementaryLoss(std::move(options)),
      alpha_(alpha),
      of_moduli_(of_moduli),
      transform_(std::move(transform)) {
  require_waves(transform_, ignore_nans(), path);
}

at::Tensor SpectralCrpsLoss::value(const Fields& fields) const {
  at::Tensor members = as_grid(transform_(fields.prediction));
  at::Tensor truth = as_grid(transform_(fields.target));
  if (of_moduli_) {
    members = members.abs();
    truth = truth.abs();
  }
  const double c = pair_coefficient(members.size(kEnsemble), alpha_);
  const at::Tensor score = kernel_score(members, truth, c, absolute);
  return reduce_field(apply_scalers(score, fields.scalers, fields.nodes), fields.over_variables,
                      fields.nodes);
}

// --------------------------------------------------------------------------------- options ---

namespace {

void require_sphere(const TransformOptions& transform, const char* loss, const std::string& path) {
  if (transform.on_sphere()) return;
  throw ConfigError(path + ".transform.kind", concat(loss, " needs the sphere"),
                    "use octahedral_sht or reduced_sht");
}

LossPtr make_spectral(SpectralKind kind, const TransformOptions& options, const LossPlace& place) {
  SpectralTransform transform = options.make(place.inputs, place.path + ".transform");
  const bool by_degree = kind == SpectralKind::kAmse || kind == SpectralKind::kPower;
  const int64_t modes = by_degree ? transform.sphere->size() : transform.num_coefficients();
  return std::make_shared<SpectralLoss>(kind, std::move(transform), place.elementary(modes),
                                        place.path);
}

}  // namespace

void SpectralLossKind::bind(config::Binder& b) {
  b.section("transform", transform, {"from nodes to waves, for spectral losses"});
}

void SpectralLossKind::validate(const std::string& path) const {
  if (!transform.on_sphere() && (transform.x_dim == 0 || transform.y_dim == 0)) {
    throw ConfigError(path + ".transform.x_dim", "a rectangle needs x_dim and y_dim");
  }
}

void SpectralLossKind::check(const LossInputs& inputs, const std::string& path) const {
  transform.check(inputs, path + ".transform");
}

void SpectralAmseKind::validate(const std::string& path) const {
  require_sphere(transform, "spectral_amse", path);
}

LossPtr SpectralAmseKind::make(const LossPlace& place) const {
  return make_spectral(SpectralKind::kAmse, transform, place);
}

void PowerSpectrumKind::validate(const std::string& path) const {
  require_sphere(transform, "power_spectrum", path);
}

LossPtr PowerSpectrumKind::make(const LossPlace& place) const {
  return make_spectral(SpectralKind::kPower, transform, place);
}

LossPtr LogSpectralDistanceKind::make(const LossPlace& place) const {
  return make_spectral(SpectralKind::kLogDistance, transform, place);
}

LossPtr FourierCorrelationKind::make(const LossPlace& place) const {
  return make_spectral(SpectralKind::kCorrelation, transform, place);
}

void SpectralCrpsKind::bind(config::Binder& b) {
  bind_alpha(b, alpha);
  b.boolean("coefficient_magnitude", coefficient_magnitude, {"of the moduli of coefficients"});
  SpectralLossKind::bind(b);
}

LossPtr SpectralCrpsKind::make(const LossPlace& place) const {
  SpectralTransform of_field = transform.make(place.inputs, place.path + ".transform");
  const int64_t modes = of_field.num_coefficients();
  return std::make_shared<SpectralCrpsLoss>(alpha, coefficient_magnitude, std::move(of_field),
                                            place.elementary(modes), place.path);
}

}  // namespace aifs::train
