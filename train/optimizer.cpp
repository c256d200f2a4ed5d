// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "parallel/process_mesh.h"

#ifdef AIFS_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>

#include "model/kernels/cuda/adamw.h"
#endif

namespace aifs::train {

namespace {

double l2_norm(const at::Tensor& flat) {
  return at::linalg_vector_norm(flat).item<double>();
}

}  // namespace

double gradient_norm(const model::ParameterSet& parameters, parallel::Communicator& tensor_ranks) {
  const at::Tensor& flat = parameters.flat_gradients();
  const int64_t whole = parameters.first_sliced();
  if (whole == flat.numel()) return l2_norm(flat);
  const double slices = l2_norm(flat.narrow(0, whole, flat.numel() - whole));
  const double all_slices = parallel::sum_over(tensor_ranks, {slices * slices})[0];
  return std::hypot(l2_norm(flat.narrow(0, 0, whole)), std::sqrt(all_slices));
}

double clip_gradients(const at::Tensor& flat_gradients, ClipKind kind, double limit,
                      const std::function<double()>& global_norm) {
  switch (kind) {
    case ClipKind::kNone:
      return 0.0;
    case ClipKind::kValue:
      flat_gradients.clamp_(-limit, limit);
      return 0.0;
    case ClipKind::kNorm: {
      const double norm = global_norm ? global_norm() : l2_norm(flat_gradients);
      flat_gradients.mul_(std::min(1.0, limit / (norm + 1e-6)));  // torch's clip_grad_norm_
      return norm;
    }
  }
  return 0.0;
}

double ademamix_alpha(const AdamWOptions& options, int64_t step) {
  if (step >= options.alpha_warmup) return options.alpha;
  return options.alpha * static_cast<double>(step) / static_cast<double>(options.alpha_warmup);
}

double ademamix_beta3(const AdamWOptions& options, int64_t step) {
  if (step >= options.beta3_warmup) return options.beta3;
  // The half-life grows linearly from that of beta1 to that of beta3.
  const auto half_life = [](double beta) { return std::log(0.5) / std::log(beta + 1e-8) - 1.0; };
  const double a = static_cast<double>(step) / static_cast<double>(options.beta3_warmup);
  const double f = (1.0 - a) * half_life(options.beta1) + a * half_life(options.beta3);
  return std::pow(0.5, 1.0 / (1.0 + f));
}

double scaled_lr(double lr, LrScaling rule, int64_t samples_per_step, int64_t reference_samples) {
  const double ratio =
      static_cast<double>(samples_per_step) / static_cast<double>(reference_samples);
  switch (rule) {
    case LrScaling::kNone:
      return lr;
    case LrScaling::kLinear:
      return lr * ratio;
    case LrScaling::kSqrt:
      return lr * std::sqrt(ratio);
  }
  return lr;
}

AdamW::AdamW(const model::ParameterSet& parameters, const AdamWOptions& options)
    : parameters_(parameters), options_(options) {
  AIFS_CHECK(parameters.is_flat(), "the optimiser needs flat parameters");
  moment1_ = at::zeros_like(parameters.flat_values());
  moment2_ = at::zeros_like(parameters.flat_values());
  states_ = {{"moment1", moment1_}, {"moment2", moment2_}};
  if (options.kind == OptimizerKind::kAdemamix) {
    slow_moment_ = at::zeros_like(parameters.flat_values());
    attach("slow_moment", slow_moment_);
  }
  set_ranges({{.begin = 0,
               .end = parameters.flat_values().numel(),
               .weight_decay = options.weight_decay}});
}

void AdamW::set_ranges(std::vector<ParameterRange> ranges) {
  ranges_ = std::move(ranges);
  for (const model::Parameter& parameter : parameters_.entries()) {
    if (parameter.unused && parameter.offset >= 0) leave_out(parameter);
  }
}

void AdamW::exclude(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const model::Parameter& parameter = parameters_.at(name);  // throws if it does not exist
    if (parameter.offset >= 0) leave_out(parameter);
  }
}

void AdamW::leave_out(const model::Parameter& parameter) {
  const int64_t hole_begin = parameter.offset;
  const int64_t hole_end = parameter.offset + parameter.tensor.numel();
  std::vector<ParameterRange> rest;
  for (const ParameterRange& range : ranges_) {
    ParameterRange before = range, after = range;
    before.end = std::min(range.end, hole_begin);
    after.begin = std::max(range.begin, hole_end);
    if (before.begin < before.end) rest.push_back(before);
    if (after.begin < after.end) rest.push_back(after);
  }
  ranges_ = std::move(rest);
}
// One range of the flat buffers by one kernel.
bool AdamW::step_on_gpu([[maybe_unused]] const ParameterRange& range, [[maybe_unused]] double lr,
                        [[maybe_unused]] double correction1, [[maybe_unused]] double correction2) {
#ifdef AIFS_HAVE_CUDA
  const at::Tensor& values = parameters_.flat_values();
  if (options_.kind != OptimizerKind::kAdamW) return false;
  if (!values.is_cuda() || values.scalar_type() != at::kFloat) return false;
  const auto at = [&](const at::Tensor& flat) { return flat.data_ptr<float>() + range.begin; };
  const model::cuda::AdamWStep step{.value = at(values),
                                    .gradient = at(parameters_.flat_gradients()),
                                    .moment1 = at(moment1_),
                                    .moment2 = at(moment2_),
                                    .size = range.end - range.begin,
                                    .clip = std::numeric_limits<float>::infinity(),
                                    .decay = static_cast<float>(1.0 - lr * range.weight_decay),
                                    .beta1 = static_cast<float>(options_.beta1),
                                    .beta2 = static_cast<float>(options_.beta2),
                                    .eps = static_cast<float>(options_.eps),
                                    .step_size = static_cast<float>(lr / correction1),
                                    .root_correction2 = static_cast<float>(correction2)};
  model::cuda::adamw_step(step, c10::cuda::getCurrentCUDAStream(values.device().index()));
  return true;
#else
  return false;
#endif
}

void AdamW::step(double lr) {
  ++num_steps_;
  for (const ParameterRange& range : ranges_)
    step_range(range, lr * range.lr_factor);
}

void AdamW::step_range(const ParameterRange& range, double lr) {
  const auto& o = options_;
  const double correction1 = 1.0 - std::pow(o.beta1, static_cast<double>(num_steps_));
  const double correction2 = std::sqrt(1.0 - std::pow(o.beta2, static_cast<double>(num_steps_)));
  if (step_on_gpu(range, lr, correction1, correction2)) return;
  const auto part = [&](const at::Tensor& flat) {
    return flat.narrow(0, range.begin, range.end - range.begin);
  };
  const at::Tensor value = part(parameters_.flat_values());
  const at::Tensor gradient = part(parameters_.flat_gradients());
  const at::Tensor m = part(moment1_), v = part(moment2_);
  if (o.kind == OptimizerKind::kAdamW) value.mul_(1.0 - lr * range.weight_decay);
  m.lerp_(gradient, 1.0 - o.beta1);
  v.mul_(o.beta2).addcmul_(gradient, gradient, 1.0 - o.beta2);
  const at::Tensor denominator = (v.sqrt() / correction2).add_(o.eps);
  if (o.kind == OptimizerKind::kAdamW) {
    value.addcdiv_(m, denominator, -lr / correction1);
    return;
  }
  const at::Tensor slow = part(slow_moment_);
  slow.lerp_(gradient, 1.0 - ademamix_beta3(o, num_steps_));
  const at::Tensor update =
      (m / correction1).add_(slow, ademamix_alpha(o, num_steps_)).div_(denominator);
  value.sub_(update.add_(value, range.weight_decay), lr);
}

}  // namespace aifs::train
