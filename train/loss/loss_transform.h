// SPDX-License-Identifier: Apache-2.0
// From fields on nodes to coefficients of waves: spherical harmonics of a Gaussian grid, Fourier or
// cosine series of a rectangle; and the options that choose one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "model/kernels/spectral_transform.h"
#include "train/loss/loss_kind.h"
#include "train/loss/sparse_rows.h"

namespace aifs::train {

enum class TransformKind { kFft2d, kDct2d, kOctahedralSht, kReducedSht };

constexpr auto enum_table(TransformKind) {
  using enum TransformKind;
  return std::to_array<EnumName<TransformKind>>({{kFft2d, "fft2d"},
                                                 {kDct2d, "dct2d"},
                                                 {kOctahedralSht, "octahedral_sht"},
                                                 {kReducedSht, "reduced_sht"}});
}

// Returns what a transform on so many rings is truncated at if nothing else is asked for.
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

// Another grid, to which fields are brought first.
struct ProjectionOptions {
  std::string grid;  // empty: none
  int64_t neighbours = 3;
  double sigma = 0.1;
  void bind(config::Binder& b);
};

struct TransformOptions {
  TransformKind kind = TransformKind::kOctahedralSht;
  std::string grid;         // sphere; empty: that of the data
  int64_t truncation = -1;  // sphere; -1: half the rings, less one
  int64_t x_dim = 0, y_dim = 0;
  bool filter = false;
  std::vector<int64_t> subgrid;
  ProjectionOptions projection;

  void bind(config::Binder& b);
  // `path` is that of the options here and below.
  void validate(const std::string& path) const;
  bool on_sphere() const {
    return kind == TransformKind::kOctahedralSht || kind == TransformKind::kReducedSht;
  }
  // Throws ConfigError if the transform is not of as many points as it gets. Of the nodes only the
  // number counts.
  void check(const LossInputs& inputs, const std::string& path) const;
  // Throws ConfigError as check().
  SpectralTransform make(const LossInputs& inputs, const std::string& path) const;
};

}  // namespace aifs::train
