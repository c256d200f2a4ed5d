// SPDX-License-Identifier: Apache-2.0
#include "train/loss/spectral_loss.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/check.h"
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

void check_transform(const SpectralTransform& transform, bool ignore_nans,
                     const std::string& path) {
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

int64_t SpectralTransform::num_coefficients() const {
  return on_sphere() ? sphere->size() * sphere->size() : x_dim * y_dim;
}

at::Tensor SpectralTransform::operator()(const at::Tensor& field) const {
  at::Tensor x = projection ? projection->apply(field) : field;
  if (subgrid) x = x.narrow(kGrid, subgrid->first, subgrid->second - subgrid->first);
  const int64_t points = on_sphere() ? sphere->num_points() : x_dim * y_dim;
  AIFS_CHECK(x.size(kGrid) == points, "a transform of ", points, " points got ", x.size(kGrid));
  x = x.transpose(kGrid, kVariable);  // (B, T, E, V, N)
  switch (kind) {
    case TransformKind::kFft2d:
      x = model::fourier_2d(x, y_dim, x_dim, filter);
      break;
    case TransformKind::kDct2d:
      x = model::cosine_2d(x, y_dim, x_dim);
      break;
    case TransformKind::kOctahedralSht:
    case TransformKind::kReducedSht:
      x = sphere->analyse(x);
      break;
  }
  return x.movedim(3, -1);
}

SpectralLoss::SpectralLoss(SpectralKind kind, SpectralTransform transform,
                           ElementaryOptions options, const std::string& path)
    : ElementaryLoss(std::move(options)), kind_(kind), transform_(std::move(transform)) {
  check_transform(transform_, ignore_nans(), path);
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
  check_transform(transform_, ignore_nans(), path);
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

}  // namespace aifs::train
