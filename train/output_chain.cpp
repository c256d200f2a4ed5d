// SPDX-License-Identifier: Apache-2.0
#include "train/output_chain.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace aifs::train {

OutputChain::OutputChain(data::Normaliser normaliser, data::Remapper remapper,
                         data::PostProcessor post, std::vector<int64_t> columns)
    : normaliser_(std::move(normaliser)),
      remapper_(std::move(remapper)),
      post_(std::move(post)),
      columns_(std::move(columns)) {}

at::Tensor OutputChain::physical(const at::Tensor& normalised) const {
  const size_t width = columns_.size();
  AIFS_CHECK(normalised.size(-1) == static_cast<int64_t>(width), normalised.size(-1),
             " columns for ", width, " outputs");
  at::Tensor result = normalised.detach()
                          .to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true)
                          .contiguous();
  const std::span<float> values(result.data_ptr<float>(), static_cast<size_t>(result.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = normaliser_.inverse(values[i], columns_[i % width]);
  remapper_.inverse(values, columns_);
  post_.apply(values);
  return result;
}

at::Tensor OutputChain::comparable(const at::Tensor& normalised) const {
  if (is_affine()) return normalised;
  std::vector<float> factors;
  for (const int64_t column : columns_)
    factors.push_back(normaliser_.mul[static_cast<size_t>(column)]);
  const at::Tensor factor = at::tensor(at::ArrayRef<float>(factors), at::kFloat);
  return (physical(normalised) * factor).to(normalised.options());
}

}  // namespace aifs::train
