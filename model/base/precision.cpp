// SPDX-License-Identifier: Apache-2.0
#include "model/base/precision.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

namespace aifs::model {

namespace {

enum class Rule { kAsActivations, kAtLeastFp32 };

constexpr std::array<std::pair<OpKind, Rule>, 6> kPolicy{
    {{OpKind::kProduct, Rule::kAsActivations},
     {OpKind::kElementwise, Rule::kAsActivations},
     {OpKind::kNormalisation, Rule::kAtLeastFp32},
     {OpKind::kSoftmax, Rule::kAtLeastFp32},
     {OpKind::kSegmentSum, Rule::kAtLeastFp32},
     {OpKind::kOutput, Rule::kAtLeastFp32}}};

}  // namespace

at::ScalarType compute_type(OpKind op, at::ScalarType activations) {
  for (const auto& [kind, rule] : kPolicy) {
    if (kind == op && rule == Rule::kAtLeastFp32) return at::promote_types(activations, at::kFloat);
  }
  return activations;
}

at::Tensor for_op(OpKind op, const at::Tensor& x) {
  return x.to(compute_type(op, x.scalar_type()));
}

}  // namespace aifs::model
