// SPDX-License-Identifier: Apache-2.0
// Losses of the spectral coefficients of prediction and truth. Their scalers over the grid act on
// coefficients (or degrees), not on nodes. Every rank that shares a sample computes them from the
// whole field.
#pragma once

#include "train/loss/loss_kind.h"
#include "train/loss/loss_transform.h"

namespace aifs::train {

// amse: adjusted mean squared error of amplitudes and coherence per degree (Subich et al. 2025);
// power: squared difference of the power of a degree; log_distance: root of the mean squared
// difference of the logarithms of power; correlation: one minus the normalised cross spectrum.
// amse and power need the sphere.
enum class SpectralKind { kAmse, kPower, kLogDistance, kCorrelation };

class SpectralLoss : public ElementaryLoss {
 public:
  // Throws ConfigError (path `path`) for a combination that is not defined.
  SpectralLoss(SpectralKind kind, SpectralTransform transform, ElementaryOptions options,
               const std::string& path);

 protected:
  at::Tensor value(const Fields& fields) const override;
  bool needs_all_nodes() const override { return true; }

 private:
  SpectralKind kind_;
  SpectralTransform transform_;
};

// The kernel score of coefficients (moduli of complex differences), or of their moduli.
class SpectralCrpsLoss : public ElementaryLoss {
 public:
  SpectralCrpsLoss(double alpha, bool of_moduli, SpectralTransform transform,
                   ElementaryOptions options, const std::string& path);

 protected:
  at::Tensor value(const Fields& fields) const override;
  bool needs_all_nodes() const override { return true; }

 private:
  double alpha_;
  bool of_moduli_;
  SpectralTransform transform_;
};

// Describes what losses of waves share.
struct SpectralLossKind : LossKind {
  TransformOptions transform;

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  void check(const LossInputs& inputs, const std::string& path) const override;
  bool is_of_waves() const override { return true; }
};

struct SpectralAmseKind : SpectralLossKind {
  void validate(const std::string& path) const override;
  LossPtr make(const LossPlace& place) const override;
};

struct PowerSpectrumKind : SpectralLossKind {
  void validate(const std::string& path) const override;
  LossPtr make(const LossPlace& place) const override;
};

struct LogSpectralDistanceKind : SpectralLossKind {
  LossPtr make(const LossPlace& place) const override;
};

struct FourierCorrelationKind : SpectralLossKind {
  LossPtr make(const LossPlace& place) const override;
};

struct SpectralCrpsKind : SpectralLossKind {
  double alpha = 0.95;
  bool coefficient_magnitude = false;

  void bind(config::Binder& b) override;
  bool compares_members() const override { return true; }
  LossPtr make(const LossPlace& place) const override;
};

}  // namespace aifs::train
