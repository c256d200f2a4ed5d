// SPDX-License-Identifier: Apache-2.0
#include "train/output_chain.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace aifs::train {

OutputChain::OutputChain(const data::Normaliser& normaliser, data::Remapper remapper,
                         data::PostProcessor post, std::vector<int64_t> columns)
    : remapper_(std::move(remapper)), post_(std::move(post)), columns_(std::move(columns)) {
  for (const int64_t column : columns_) {
    add_.push_back(normaliser.add[static_cast<size_t>(column)]);
    mul_.push_back(normaliser.mul[static_cast<size_t>(column)]);
  }
}

at::Tensor OutputChain::physical(const at::Tensor& normalised) const {
  const size_t width = columns_.size();
  AIFS_CHECK(normalised.size(-1) == static_cast<int64_t>(width), normalised.size(-1),
             " columns for ", width, " outputs");
  at::Tensor result = normalised.detach()
                          .to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true)
                          .contiguous();
  // Normaliser::inverse() of all values.
  result.sub_(at::tensor(at::ArrayRef<float>(add_), at::kFloat));
  result.div_(at::tensor(at::ArrayRef<float>(mul_), at::kFloat));
  const std::span<float> values(result.data_ptr<float>(), static_cast<size_t>(result.numel()));
  remapper_.inverse(values, columns_);
  post_.apply(values);
  return result;
}

ChosenOutputs OutputChain::choose(const at::Tensor& chosen, at::Device device) const {
  AIFS_CHECK(is_affine(), "the chain is not affine");
  const auto factors = [&](const std::vector<float>& values) {
    return at::tensor(at::ArrayRef<float>(values), at::kFloat).index_select(0, chosen).to(device);
  };
  return {chosen.to(device), factors(add_), factors(mul_)};
}

at::Tensor OutputChain::affine_physical(const at::Tensor& normalised,
                                        const ChosenOutputs& outputs) {
  const at::Tensor values = normalised.detach().index_select(-1, outputs.positions).to(at::kFloat);
  return values.sub(outputs.add).div_(outputs.mul);
}

at::Tensor OutputChain::comparable(const at::Tensor& normalised) const {
  if (is_affine()) return normalised;
  const at::Tensor factor = at::tensor(at::ArrayRef<float>(mul_), at::kFloat);
  return (physical(normalised) * factor).to(normalised.options());
}

}  // namespace aifs::train
