// SPDX-License-Identifier: Apache-2.0
#include "verify/fourier.h"

#include <cmath>
#include <numbers>

#include "core/check.h"

namespace aifs::verify {

namespace {

size_t smallest_factor(size_t n) {
  for (size_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

}  // namespace

Fourier::Fourier(size_t length) : length_(length) {
  AIFS_CHECK(length > 0, "a circle without points");
  for (size_t k = 0; k < length; ++k)
    roots_.push_back(std::polar(
        1.0, -2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length)));
}

// The transform of every `stride`-th value from `first` on: those of its parts by the smallest
// factor, put together (Cooley and Tukey 1965, Mathematics of Computation 19, 297).
void Fourier::part(std::span<const float> values, size_t first, size_t stride, Complex* out) const {
  const size_t n = length_ / stride;
  if (n == 1) {
    out[0] = static_cast<double>(values[first]);
    return;
  }
  const size_t factor = smallest_factor(n), width = n / factor;
  for (size_t r = 0; r < factor; ++r)
    part(values, first + r * stride, stride * factor, out + r * width);
  std::vector<Complex> terms(factor);
  for (size_t k = 0; k < width; ++k) {
    for (size_t r = 0; r < factor; ++r)
      terms[r] = out[r * width + k] * roots_[r * k * stride];
    for (size_t s = 0; s < factor; ++s) {
      Complex sum = terms[0];
      for (size_t r = 1; r < factor; ++r)
        sum += terms[r] * roots_[r * s % factor * (length_ / factor)];
      out[s * width + k] = sum;
    }
  }
}

void Fourier::transform(std::span<const float> values, std::vector<Complex>& out) const {
  AIFS_CHECK(values.size() == length_, values.size(), " values of ", length_);
  out.resize(length_);
  part(values, 0, 1, out.data());
  out.resize(length_ / 2 + 1);
  for (Complex& coefficient : out)
    coefficient /= static_cast<double>(length_);
}

}  // namespace aifs::verify
