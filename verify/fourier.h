// SPDX-License-Identifier: Apache-2.0
// Fourier coefficients of values at equal distances around a circle, of any length.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace aifs::verify {

// Immutable after construction, hence thread-safe.
class Fourier {
 public:
  // `length` > 0. Lengths with large prime factors take longer: their square at most.
  explicit Fourier(size_t length);

  size_t length() const { return length_; }
  // (length / 2 + 1) coefficients 1 / L sum_j x_j exp(-2 pi i j m / L) of (length) values.
  void transform(std::span<const float> values, std::vector<std::complex<double>>& out) const;

 private:
  using Complex = std::complex<double>;
  void part(std::span<const float> values, size_t first, size_t stride, Complex* out) const;

  size_t length_;
  std::vector<Complex> roots_;  // (length) exp(-2 pi i k / L)
};

}  // namespace aifs::verify
