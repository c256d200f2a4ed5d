// SPDX-License-Identifier: Apache-2.0
// Losses of the spectral coefficients of prediction and truth. Their scalers over the grid act on
// coefficients (or degrees), not on nodes. Every rank that shares a sample computes them from the
// whole field.
#pragma once

#include "model/kernels/spectral_transform.h"
#include "train/loss/loss_term.h"
#include "train/loss/sparse_rows.h"

namespace aifs::train {

enum class TransformKind { kFft2d, kDct2d, kOctahedralSht, kReducedSht };

// What a transform on so many rings is truncated at if nothing else is asked for.
inline int64_t default_truncation(int64_t rings) {
  return rings / 2 - 1;
}

// From nodes to coefficients.
struct SpectralTransform {
  TransformKind kind = TransformKind::kFft2d;
  int64_t y_dim = 0, x_dim = 0;  // rectangle: x runs fastest
  bool filter = false;           // fft2d: without wavenumbers of less than two points
  // Rectangle: nodes [first, last) form it; none: all.
  std::optional<std::pair<int64_t, int64_t>> subgrid = {};
  std::shared_ptr<const model::SphericalTransform> sphere = {};  // of the two on the sphere
  SparseRowsPtr projection = {};                                 // applied before

  bool on_sphere() const {
    return kind == TransformKind::kOctahedralSht || kind == TransformKind::kReducedSht;
  }
  // Length of a scaler over coefficients, and over degrees.
  int64_t num_coefficients() const;

  // (B, T, E, N, V) -> (B, T, E, rows, columns, V), complex but for dct2d; on the sphere rows are
  // degrees.
  at::Tensor operator()(const at::Tensor& field) const;
};

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

constexpr auto enum_table(TransformKind) {
  using enum TransformKind;
  return std::to_array<EnumName<TransformKind>>({{kFft2d, "fft2d"},
                                                 {kDct2d, "dct2d"},
                                                 {kOctahedralSht, "octahedral_sht"},
                                                 {kReducedSht, "reduced_sht"}});
}

}  // namespace aifs::train
