// SPDX-License-Identifier: Apache-2.0
// Spherical harmonics on Gaussian grids (octahedral, classic, regular), and Fourier and cosine
// transforms of rectangles, as differentiable functions of tensors.
//
// On the sphere a ring's real Fourier series (divided by the ring's length, times 2 pi) is
// integrated against associated Legendre functions at the Gauss-Legendre nodes:
//   c_lm = sum_k w_k P_l^m(x_k) F_m(k),  P_0^0 = 1, no Condon-Shortley sign.
// The field 1 has c_00 = 4 pi. Coefficients are (l, m) with m >= 0; those with m > l are 0.
// The trap: rings shorter than 2 m know nothing of wavenumber m, and contribute 0 to it.
#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>
#include <utility>
#include <vector>

namespace aifs::model {

// Roots of the Legendre polynomial, descending, and their weights (sum 2), in fp64.
struct GaussLegendre {
  std::vector<double> nodes, weights;
};
GaussLegendre gauss_legendre(int64_t count);

// P_l^m(x_k) as (m, l, k) in fp64, m and l from 0 to truncation, times `first` (the value of
// P_0^0).
at::Tensor legendre_table(const std::vector<double>& nodes, int64_t truncation, double first);

class SphericalTransform {
 public:
  // Rings from north to south, all points of a ring together, from longitude 0 eastwards.
  // 0 <= truncation < number of rings. Throws Error otherwise.
  SphericalTransform(std::vector<int64_t> ring_lengths, int64_t truncation);

  int64_t num_points() const { return num_points_; }
  int64_t size() const { return truncation_ + 1; }  // of l and of m

  // (..., points) -> complex (..., l, m).
  at::Tensor analyse(const at::Tensor& field) const;
  // Complex (..., l, m) -> (..., points); with P_0^0 = 1 / (4 pi), so that it undoes analyse() for
  // fields within the truncation.
  at::Tensor synthesise(const at::Tensor& coefficients) const;

 private:
  struct RingGroup {  // rings of one length
    int64_t length;
    std::vector<int64_t> rings;
    at::Tensor points;  // i64 (rings * length)
  };

  std::vector<int64_t> ring_lengths_;
  int64_t truncation_;
  int64_t num_points_ = 0;
  std::vector<RingGroup> groups_;
  at::Tensor ring_order_;         // i64: where each ring is among the rings of all groups
  at::Tensor point_order_;        // i64: the same for points
  at::Tensor forward_, inverse_;  // fp64 (m, l, ring), the first with w_k
  // Returns the table in the types and on the devices that were asked for.
  at::Tensor cached(const at::Tensor& table, const at::Tensor& like) const;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<const at::Tensor*, at::Tensor>> cache_;
};

// (..., y * x) -> complex (..., y, x). With the filter, wavenumbers that fourier_filter() drops are
// 0.
at::Tensor fourier_2d(const at::Tensor& field, int64_t y, int64_t x, bool filter);
// (y, x) bool: sqrt(fx^2 + fy^2) < 1/2, frequencies in cycles per point.
at::Tensor fourier_filter(int64_t y, int64_t x);

// Cuts a rectangle (..., y * x) into patches (..., rows, columns, patch y * patch x) whose corners
// are `stride` points apart; beyond the end there is 0.
struct Patches {
  int64_t size_y = 0, size_x = 0;
  int64_t stride_y = 0, stride_x = 0;
};
at::Tensor cut_patches(const at::Tensor& field, int64_t y, int64_t x, const Patches& patches);

// Cosine transform (DCT-II, unnormalised: twice the sum of f cos) of both directions,
// (..., y * x) -> (..., y, x).
at::Tensor cosine_2d(const at::Tensor& field, int64_t y, int64_t x);

}  // namespace aifs::model
