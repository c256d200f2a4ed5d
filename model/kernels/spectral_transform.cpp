// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/spectral_transform.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/check.h"

namespace aifs::model {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kNewtonEnd = 1e-15;

at::Tensor index_tensor(const std::vector<int64_t>& list) {
  return at::tensor(at::ArrayRef<int64_t>(list), at::kLong);
}

// inverse[order[i]] = i.
std::vector<int64_t> inverted(const std::vector<int64_t>& order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

// (..., a, b, ...) with the last dimensions replaced.
std::vector<int64_t> leading(const at::Tensor& x, int64_t dropped,
                             std::initializer_list<int64_t> appended) {
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end() - dropped);
  shape.insert(shape.end(), appended);
  return shape;
}

// Sum over the last axis but one of (..., k, m) complex with a table (m, l, k): (..., l, m).
at::Tensor contract(const at::Tensor& waves, const at::Tensor& table) {
  const int64_t k = waves.size(-2), m = waves.size(-1), l = table.size(1);
  const at::Tensor pairs =
      at::view_as_real(waves).reshape({-1, k, m, 2}).permute({2, 1, 0, 3}).reshape({m, k, -1});
  const at::Tensor sums = at::matmul(table, pairs);  // (m, l, copies * 2)
  const at::Tensor back =
      sums.reshape({m, l, -1, 2}).permute({2, 1, 0, 3}).contiguous();  // (copies, l, m, 2)
  return at::view_as_complex(back).reshape(leading(waves, 2, {l, m}));
}

}  // namespace

GaussLegendre gauss_legendre(int64_t count) {
  GaussLegendre result;
  const auto n = static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    double x = std::cos(kPi * (static_cast<double>(i) + 0.75) / (n + 0.5)), slope = 0.0;
    for (int step = 0; step < 100; ++step) {
      double p = 1.0, before = 0.0;
      for (int64_t j = 1; j <= count; ++j) {
        const auto d = static_cast<double>(j);
        before = std::exchange(p, ((2.0 * d - 1.0) * x * p - (d - 1.0) * before) / d);
      }
      slope = n * (x * p - before) / (x * x - 1.0);
      const double move = p / slope;
      x -= move;
      if (std::abs(move) < kNewtonEnd) break;
    }
    result.nodes.push_back(x);
    result.weights.push_back(2.0 / ((1.0 - x * x) * slope * slope));
  }
  return result;
}

at::Tensor legendre_table(const std::vector<double>& nodes, int64_t truncation, double first) {
  const auto rings = static_cast<int64_t>(nodes.size());
  at::Tensor table = at::zeros({truncation + 1, truncation + 1, rings}, at::kDouble);
  auto p = table.accessor<double, 3>();  // [m][n][k]
  for (int64_t k = 0; k < rings; ++k) {
    const double x = nodes[static_cast<size_t>(k)];
    p[0][0][k] = first;
    for (int64_t l = 1; l <= truncation; ++l) {
      const auto n = static_cast<double>(l);
      p[l - 1][l][k] = std::sqrt(2.0 * n + 1.0) * x * p[l - 1][l - 1][k];
      p[l][l][k] =
          std::sqrt((2.0 * n + 1.0) * (1.0 + x) * (1.0 - x) / (2.0 * n)) * p[l - 1][l - 1][k];
      for (int64_t order = 0; order < l - 1; ++order) {
        const auto m = static_cast<double>(order);
        const double a = x * std::sqrt((2.0 * n - 1.0) / (n - m) * (2.0 * n + 1.0) / (n + m));
        const double b = std::sqrt((n + m - 1.0) / (n - m) * (2.0 * n + 1.0) / (2.0 * n - 3.0) *
                                   (n - m - 1.0) / (n + m));
        p[order][l][k] = a * p[order][l - 1][k] - b * p[order][l - 2][k];
      }
    }
  }
  return table;
}

SphericalTransform::SphericalTransform(std::vector<int64_t> ring_lengths, int64_t truncation)
    : ring_lengths_(std::move(ring_lengths)), truncation_(truncation) {
  const auto rings = static_cast<int64_t>(ring_lengths_.size());
  AIFS_CHECK(truncation >= 0 && truncation < rings, "truncation ", truncation, " for ", rings,
             " rings");
  std::map<int64_t, RingGroup> by_length;
  std::map<int64_t, std::vector<int64_t>> points;
  for (int64_t ring = 0; ring < rings; ++ring) {
    const int64_t length = ring_lengths_[static_cast<size_t>(ring)];
    by_length[length].rings.push_back(ring);
    for (int64_t i = 0; i < length; ++i)
      points[length].push_back(num_points_ + i);
    num_points_ += length;
  }
  std::vector<int64_t> all_rings, all_points;
  for (auto& [length, group] : by_length) {
    group.length = length;
    group.points = index_tensor(points[length]);
    all_rings.insert(all_rings.end(), group.rings.begin(), group.rings.end());
    all_points.insert(all_points.end(), points[length].begin(), points[length].end());
    groups_.push_back(std::move(group));
  }
  ring_order_ = index_tensor(inverted(all_rings));
  point_order_ = index_tensor(inverted(all_points));
  const GaussLegendre gauss = gauss_legendre(rings);
  forward_ = legendre_table(gauss.nodes, truncation, 1.0) *
             at::tensor(at::ArrayRef<double>(gauss.weights), at::kDouble);
  inverse_ = legendre_table(gauss.nodes, truncation, 1.0 / (4.0 * kPi));
}

at::Tensor SphericalTransform::cached(const at::Tensor& table, const at::Tensor& like) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [source, copy] : cache_) {
    const bool fits = copy.scalar_type() == like.scalar_type() && copy.device() == like.device();
    if (source == &table && fits) return copy;
  }
  return cache_.emplace_back(&table, table.to(like.device(), like.scalar_type())).second;
}

at::Tensor SphericalTransform::analyse(const at::Tensor& field) const {
  AIFS_CHECK(field.size(-1) == num_points_, "a field of ", field.size(-1), " points on a grid of ",
             num_points_);
  std::vector<at::Tensor> waves;
  for (const RingGroup& group : groups_) {
    const auto rings = static_cast<int64_t>(group.rings.size());
    const at::Tensor rows = field.index_select(-1, group.points.to(field.device()))
                                .reshape(leading(field, 1, {rings, group.length}));
    at::Tensor series = at::fft_rfft(rows, std::nullopt, -1, "forward");
    const int64_t known = std::min(series.size(-1), size());
    series = series.narrow(-1, 0, known);
    if (known < size()) series = at::constant_pad_nd(series, {0, size() - known});
    waves.push_back(series);
  }
  const at::Tensor rings = at::cat(waves, -2).index_select(-2, ring_order_.to(field.device()));
  return contract(2.0 * kPi * rings, cached(forward_, field));
}

at::Tensor SphericalTransform::synthesise(const at::Tensor& coefficients) const {
  AIFS_CHECK(coefficients.size(-1) == size() && coefficients.size(-2) == size(),
             "coefficients of shape ", coefficients.sizes(), " for truncation ", truncation_);
  // (..., k, m): the table with l and k exchanged.
  const at::Tensor waves =
      contract(coefficients, cached(inverse_, at::real(coefficients)).transpose(1, 2));
  std::vector<at::Tensor> rows;
  for (const RingGroup& group : groups_) {
    const at::Tensor series = waves.index_select(-2, index_tensor(group.rings).to(waves.device()));
    const auto points = static_cast<int64_t>(group.rings.size()) * group.length;
    rows.push_back(at::fft_irfft(series, group.length, -1, "forward")
                       .reshape(leading(coefficients, 2, {points})));
  }
  return at::cat(rows, -1).index_select(-1, point_order_.to(waves.device()));
}

at::Tensor fourier_filter(int64_t y, int64_t x) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor fy = at::fft_fftfreq(y, 1.0, options).unsqueeze(1);
  const at::Tensor fx = at::fft_fftfreq(x, 1.0, options).unsqueeze(0);
  return (fx.square() + fy.square()).sqrt() < 0.5;
}

at::Tensor fourier_2d(const at::Tensor& field, int64_t y, int64_t x, bool filter) {
  const at::Tensor waves = at::fft_fft2(field.reshape(leading(field, 1, {y, x})));
  return filter ? waves * fourier_filter(y, x).to(field.device(), field.scalar_type()) : waves;
}

at::Tensor cut_patches(const at::Tensor& field, int64_t y, int64_t x, const Patches& patches) {
  const auto missing = [](int64_t length, int64_t size, int64_t stride) {
    const int64_t rest = length <= size ? size - length : (stride - (length - size) % stride);
    return length > size && rest == stride ? 0 : rest;
  };
  const at::Tensor plane = field.reshape(leading(field, 1, {y, x}));
  const at::Tensor padded =
      at::constant_pad_nd(plane, {0, missing(x, patches.size_x, patches.stride_x), 0,
                                  missing(y, patches.size_y, patches.stride_y)});
  // (..., rows, x, patch y) -> (..., rows, columns, patch y, patch x)
  return padded.unfold(-2, patches.size_y, patches.stride_y)
      .unfold(-2, patches.size_x, patches.stride_x)
      .flatten(-2);
}

namespace {

// DCT-II of the last axis by a complex FFT of the same length (Makhoul 1980, IEEE Trans. ASSP 28).
at::Tensor cosine_transform(const at::Tensor& field) {
  const int64_t n = field.size(-1);
  const at::Tensor even = field.slice(-1, 0, n, 2), odd = field.slice(-1, 1, n, 2).flip({-1});
  const at::Tensor waves = at::fft_fft(at::cat({even, odd}, -1));
  const at::Tensor angle =
      at::arange(n, field.options().requires_grad(false)) * -kPi / (2.0 * static_cast<double>(n));
  return 2.0 * (at::real(waves) * angle.cos() - at::imag(waves) * angle.sin());
}

}  // namespace

at::Tensor cosine_2d(const at::Tensor& field, int64_t y, int64_t x) {
  const at::Tensor along_x = cosine_transform(field.reshape(leading(field, 1, {y, x})));
  return cosine_transform(along_x.transpose(-1, -2)).transpose(-1, -2);
}

}  // namespace aifs::model
