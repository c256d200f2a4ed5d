// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

#ifdef AIFS_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>

#include "model/kernels/cuda/adamw.h"
#endif

namespace aifs::train {

double clip_gradients(const at::Tensor& flat_gradients, ClipKind kind, double limit) {
  switch (kind) {
    case ClipKind::kNone:
      return 0.0;
    case ClipKind::kValue:
      flat_gradients.clamp_(-limit, limit);
      return 0.0;
    case ClipKind::kNorm: {
      const double norm = at::linalg_vector_norm(flat_gradients).item<double>();
      flat_gradients.mul_(std::min(1.0, limit / (norm + 1e-6)));  // torch's clip_grad_norm_
      return norm;
    }
  }
  return 0.0;
}

AdamW::AdamW(const model::ParameterSet& parameters, const AdamWOptions& options)
    : parameters_(parameters), options_(options) {
  AIFS_CHECK(parameters.is_flat(), "the optimiser needs flat parameters");
  moment1_ = at::zeros_like(parameters.flat_values());
  moment2_ = at::zeros_like(parameters.flat_values());
  exclude({});
}

void AdamW::exclude(const std::vector<std::string>& names) {
  std::vector<std::pair<int64_t, int64_t>> holes;
  for (const std::string& name : names)
    parameters_.at(name);  // throws for a name that does not exist
  for (const model::Parameter& parameter : parameters_.entries()) {
    const bool named = std::find(names.begin(), names.end(), parameter.name) != names.end();
    if ((parameter.unused || named) && parameter.offset >= 0) {
      holes.emplace_back(parameter.offset, parameter.offset + parameter.tensor.numel());
    }
  }
  std::sort(holes.begin(), holes.end());
  ranges_.clear();
  int64_t begin = 0;
  for (const auto& [hole_begin, hole_end] : holes) {
    if (hole_begin > begin) ranges_.emplace_back(begin, hole_begin);
    begin = hole_end;
  }
  const int64_t end = parameters_.flat_values().numel();
  if (begin < end) ranges_.emplace_back(begin, end);
}

// One range of the flat buffers by one kernel.
bool AdamW::step_on_gpu([[maybe_unused]] double lr, [[maybe_unused]] double correction1,
                        [[maybe_unused]] double correction2) {
#ifdef AIFS_HAVE_CUDA
  const at::Tensor& values = parameters_.flat_values();
  if (!values.is_cuda() || values.scalar_type() != at::kFloat) return false;
  for (const auto& [begin, end] : ranges_) {
    const auto at = [first = begin](const at::Tensor& flat) {
      return flat.data_ptr<float>() + first;
    };
    const model::cuda::AdamWStep step{.value = at(values),
                                      .gradient = at(parameters_.flat_gradients()),
                                      .moment1 = at(moment1_),
                                      .moment2 = at(moment2_),
                                      .size = end - begin,
                                      .clip = std::numeric_limits<float>::infinity(),
                                      .decay = static_cast<float>(1.0 - lr * options_.weight_decay),
                                      .beta1 = static_cast<float>(options_.beta1),
                                      .beta2 = static_cast<float>(options_.beta2),
                                      .eps = static_cast<float>(options_.eps),
                                      .step_size = static_cast<float>(lr / correction1),
                                      .root_correction2 = static_cast<float>(correction2)};
    model::cuda::adamw_step(step, c10::cuda::getCurrentCUDAStream(values.device().index()));
  }
  return true;
#else
  return false;
#endif
}

void AdamW::step(double lr) {
  ++num_steps_;
  const auto& o = options_;
  const double correction1 = 1.0 - std::pow(o.beta1, static_cast<double>(num_steps_));
  const double correction2 = std::sqrt(1.0 - std::pow(o.beta2, static_cast<double>(num_steps_)));
  if (step_on_gpu(lr, correction1, correction2)) return;
  for (const auto& [begin, end] : ranges_) {
    const auto part = [&, first = begin, size = end - begin](const at::Tensor& flat) {
      return flat.narrow(0, first, size);
    };
    const at::Tensor value = part(parameters_.flat_values());
    const at::Tensor gradient = part(parameters_.flat_gradients());
    const at::Tensor m = part(moment1_), v = part(moment2_);
    value.mul_(1.0 - lr * o.weight_decay);
    m.lerp_(gradient, 1.0 - o.beta1);
    v.mul_(o.beta2).addcmul_(gradient, gradient, 1.0 - o.beta2);
    const at::Tensor denominator = (v.sqrt() / correction2).add_(o.eps);
    value.addcdiv_(m, denominator, -lr / correction1);
  }
}

}  // namespace aifs::train
