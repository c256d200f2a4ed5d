// SPDX-License-Identifier: Apache-2.0
// A layer as a unit: its tensors may be kept elsewhere (sharded over ranks, on the host) and are
// there only while it runs.
#pragma once

#include "model/base/parameters.h"
#include "model/base/recompute.h"

namespace aifs::model {

// layer(inputs), with the tensors of `unit` fetched before and released after it, and fetched once
// more before its backward pass; whoever keeps them knows when all its gradients are there. Without
// a keeper it just runs.
std::vector<at::Tensor> in_unit(const ParameterSet& set, int64_t unit, const TensorsFunction& layer,
                                const std::vector<at::Tensor>& inputs);

}  // namespace aifs::model
