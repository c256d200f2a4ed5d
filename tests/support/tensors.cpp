// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tensors.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/rng.h"

namespace aifs::test {

at::Tensor random_tensor(at::IntArrayRef sizes, uint64_t seed) {
  const CounterRng rng(seed);
  at::Tensor x = at::empty(sizes, at::kDouble);
  double* values = x.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i)
    values[i] = rng.normal(static_cast<uint64_t>(i));
  return x;
}

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.sizes() != b.sizes()) return kInfinity;
  if (a.numel() == 0) return 0.0;
  const at::Tensor difference = (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs();
  if (at::isnan(difference).any().item<bool>()) return kInfinity;
  return difference.max().item<double>();
}

}  // namespace aifs::test
