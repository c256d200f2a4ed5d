// SPDX-License-Identifier: Apache-2.0
#include "train/optim/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "model/kernels/adamw.h"

#ifdef AIFS_HAVE_CUDA
#include "model/kernels/count_work.h"
#include "model/kernels/cuda/adamw.h"
#include "model/kernels/cuda_call.h"
#endif

namespace aifs::train {

std::vector<at::Tensor> OwnGradients::all() const {
  std::vector<at::Tensor> tensors = whole;
  tensors.insert(tensors.end(), sliced.begin(), sliced.end());
  return tensors;
}

namespace {

// Slices of all ranks count once, and so does what tensor ranks have alike.
double global_norm(const OwnGradients& gradients) {
  const auto options = gradients.all()[0].options().dtype(at::kDouble);
  const auto square = [&](const std::vector<at::Tensor>& parts) {
    at::Tensor sum = at::zeros({1}, options);
    for (const at::Tensor& part : parts)
      sum += at::linalg_vector_norm(part).to(at::kDouble).square();
    return sum;
  };
  const auto add_up = [](const at::Tensor& sum, parallel::Communicator* group) {
    if (group && group->size() > 1) group->all_reduce(sum, parallel::Reduction::kSum);
  };
  const at::Tensor sliced = square(gradients.sliced);
  add_up(sliced, gradients.tensor_ranks);
  const at::Tensor sum = square(gradients.whole) + sliced;
  add_up(sum, gradients.shards);
  add_up(sum, gradients.stages);
  return std::sqrt(sum.item<double>());
}

}  // namespace

double clip_gradients(const OwnGradients& gradients, ClipKind kind, double limit) {
  const double norm = kind == ClipKind::kNorm ? global_norm(gradients) : 0.0;
  for (const at::Tensor& part : gradients.all()) {
    if (kind == ClipKind::kValue) part.clamp_(-limit, limit);
    // torch's clip_grad_norm_
    if (kind == ClipKind::kNorm) part.mul_(std::min(1.0, limit / (norm + 1e-6)));
  }
  return norm;
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
    : AdamW(parameters, options,
            {{.values = parameters.flat_values(), .gradients = parameters.flat_gradients()}},
            parameters.flat_size(), /*on_host=*/false) {}

AdamW::AdamW(const model::ParameterSet& parameters, const AdamWOptions& options,
             std::vector<OwnPart> parts, int64_t local_size, bool on_host)
    : parameters_(parameters), options_(options), parts_(std::move(parts)) {
  AIFS_CHECK(parameters.is_flat() && !parts_.empty(), "the optimiser needs flat parameters");
  const auto kind = parts_[0].values.options();
  const auto make = [&] { return at::zeros({local_size}, on_host ? kind.device(at::kCPU) : kind); };
  moment1_ = make();
  moment2_ = make();
  states_ = {{"moment1", moment1_}, {"moment2", moment2_}};
  if (options.kind == OptimizerKind::kAdemamix) {
    slow_moment_ = make();
    attach("slow_moment", slow_moment_);
  }
  set_ranges({{.begin = 0, .end = parameters.flat_size(), .weight_decay = options.weight_decay}});
}

struct AdamW::Stretch {
  at::Tensor value, gradient, moment1, moment2, slow_moment;
};

struct AdamW::Rates {
  double lr, clip, correction1, correction2;
};

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

// One stretch by one kernel.
bool AdamW::step_on_gpu([[maybe_unused]] const Stretch& stretch,
                        [[maybe_unused]] double weight_decay, [[maybe_unused]] const Rates& rates) {
#ifdef AIFS_HAVE_CUDA
  if (options_.kind != OptimizerKind::kAdamW) return false;
  const at::Tensor& value = stretch.value;
  if (!value.is_cuda() || value.scalar_type() != at::kFloat) return false;
  const model::cuda::AdamWStep step{.value = value.data_ptr<float>(),
                                    .gradient = stretch.gradient.data_ptr<float>(),
                                    .moment1 = stretch.moment1.data_ptr<float>(),
                                    .moment2 = stretch.moment2.data_ptr<float>(),
                                    .size = value.numel(),
                                    .clip = static_cast<float>(rates.clip),
                                    .decay = static_cast<float>(1.0 - rates.lr * weight_decay),
                                    .beta1 = static_cast<float>(options_.beta1),
                                    .beta2 = static_cast<float>(options_.beta2),
                                    .eps = static_cast<float>(options_.eps),
                                    .step_size = static_cast<float>(rates.lr / rates.correction1),
                                    .root_correction2 = static_cast<float>(rates.correction2)};
  model::cuda::adamw_step(step, model::stream_of(value));
  model::count_work("AdamW", {value, stretch.gradient, stretch.moment1, stretch.moment2, value,
                              stretch.moment1, stretch.moment2});
  return true;
#else
  return false;
#endif
}

void AdamW::step(double lr, double clip) {
  ++num_steps_;
  for (const ParameterRange& range : ranges_)
    step_range(range, lr * range.lr_factor, clip);
}

void AdamW::step_range(const ParameterRange& range, double lr, double clip) {
  const auto correction = [&](double beta) {
    return 1.0 - std::pow(beta, static_cast<double>(num_steps_));
  };
  const Rates rates{lr, clip, correction(options_.beta1), std::sqrt(correction(options_.beta2))};
  for (const OwnPart& part : parts_) {
    const int64_t begin = std::max(range.begin, part.begin);
    const int64_t size = std::min(range.end, part.end()) - begin;
    if (size <= 0) continue;
    const auto in_part = [&](const at::Tensor& t) { return t.narrow(0, begin - part.begin, size); };
    const auto in_moment = [&](const at::Tensor& t) {
      return t.defined() ? t.narrow(0, begin - part.begin + part.local_begin, size) : t;
    };
    const at::Tensor value = in_part(part.values);
    const at::Device place = moment1_.device();
    const Stretch stretch{.value = value.to(place),
                          .gradient = in_part(part.gradients).to(place),
                          .moment1 = in_moment(moment1_),
                          .moment2 = in_moment(moment2_),
                          .slow_moment = in_moment(slow_moment_)};
    step_stretch(stretch, range.weight_decay, rates);
    if (value.device() != place) value.copy_(stretch.value);
  }
}

void AdamW::step_stretch(const Stretch& stretch, double weight_decay, const Rates& rates) {
  const auto& o = options_;
  if (step_on_gpu(stretch, weight_decay, rates)) return;
  const auto& [value, gradient, m, v, slow] = stretch;
  const auto [lr, clip, correction1, correction2] = rates;
  if (o.kind == OptimizerKind::kAdamW && value.is_cpu() && value.scalar_type() == at::kFloat) {
    model::cpu::adamw_step({.value = value.data_ptr<float>(),
                            .gradient = gradient.data_ptr<float>(),
                            .moment1 = m.data_ptr<float>(),
                            .moment2 = v.data_ptr<float>(),
                            .clip = static_cast<float>(clip),
                            .decay = static_cast<float>(1.0 - lr * weight_decay),
                            .lerp = static_cast<float>(1.0 - o.beta1),
                            .beta2 = static_cast<float>(o.beta2),
                            .square = static_cast<float>(1.0 - o.beta2),
                            .root_correction2 = static_cast<float>(correction2),
                            .eps = static_cast<float>(o.eps),
                            .step = static_cast<float>(-lr / correction1)},
                           value.numel());
    return;
  }
  if (std::isfinite(clip)) gradient.clamp_(-clip, clip);
  if (o.kind == OptimizerKind::kAdamW) value.mul_(1.0 - lr * weight_decay);
  m.lerp_(gradient, 1.0 - o.beta1);
  v.mul_(o.beta2).addcmul_(gradient, gradient, 1.0 - o.beta2);
  const at::Tensor denominator = (v.sqrt() / correction2).add_(o.eps);
  if (o.kind == OptimizerKind::kAdamW) {
    value.addcdiv_(m, denominator, -lr / correction1);
    return;
  }
  slow.lerp_(gradient, 1.0 - ademamix_beta3(o, num_steps_));
  const at::Tensor update =
      (m / correction1).add_(slow, ademamix_alpha(o, num_steps_)).div_(denominator);
  value.sub_(update.add_(value, weight_decay), lr);
}

double clipped_step(AdamW& optimizer, double lr, const OwnGradients& gradients, ClipKind kind,
                    double limit) {
  if (kind == ClipKind::kValue) {
    optimizer.step(lr, limit);
    return 0.0;
  }
  const double norm = clip_gradients(gradients, kind, limit);
  optimizer.step(lr);
  return norm;
}

}  // namespace aifs::train
