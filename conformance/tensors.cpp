// SPDX-License-Identifier: Apache-2.0
#include "conformance/tensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace aifs::conformance {

namespace {

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return at::kDouble;
    case DType::kF32:
      return at::kFloat;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kI64:
      return at::kLong;
    case DType::kI32:
      return at::kInt;
    case DType::kI16:
      return at::kShort;
    case DType::kI8:
      return at::kChar;
    case DType::kU8:
      return at::kByte;
    case DType::kBool:
      return at::kBool;
  }
  return at::kFloat;
}

}  // namespace

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry& entry = file.at(name);
  auto* data = const_cast<std::byte*>(entry.bytes.data());  // from_blob wants it; it is cloned
  return at::from_blob(data, entry.shape, at::TensorOptions().dtype(scalar_type(entry.dtype)))
      .clone();
}

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, at::ScalarType dtype) {
  return read_tensor(file, name).to(dtype);
}

double max_abs(const at::Tensor& x) {
  return x.numel() == 0 ? 0.0 : x.detach().to(at::kDouble).abs().max().item<double>();
}

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  const at::Tensor x = a.detach().to(at::kDouble), y = b.detach().to(at::kDouble);
  if (!at::equal(at::isnan(x), at::isnan(y))) return INFINITY;
  const at::Tensor zero = at::zeros({}, at::kDouble);
  return max_abs(at::where(at::isnan(x), zero, x) - at::where(at::isnan(y), zero, y));
}

double max_difference_of_repeated(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() != b.dim()) return INFINITY;
  std::vector<int64_t> sizes;
  for (int64_t axis = 0; axis < a.dim(); ++axis) {
    const int64_t one = a.size(axis), other = b.size(axis);
    if (one != other && one != 1 && other != 1) return INFINITY;
    sizes.push_back(std::max(one, other));
  }
  return max_difference(a.expand(sizes), b.expand(sizes));
}

double relative_difference(double a, double b) {
  return b == 0.0 ? std::abs(a - b) : std::abs(a - b) / std::abs(b);
}

}  // namespace aifs::conformance
