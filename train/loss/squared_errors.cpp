// SPDX-License-Identifier: Apache-2.0
#include "train/loss/squared_errors.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/check.h"
#include "train/loss/scalers.h"

#ifdef AIFS_HAVE_CUDA
#include "model/kernels/count_work.h"
#include "model/kernels/cuda/squared_errors.h"
#include "model/kernels/cuda_call.h"
#endif

namespace aifs::train {

#ifdef AIFS_HAVE_CUDA

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// `fields`: prediction, target and then the factors.
model::cuda::SquaredErrors arguments(const variable_list& fields, double scale) {
  const at::Tensor& prediction = fields[0];
  model::cuda::SquaredErrors s{.prediction = prediction.const_data_ptr<float>(),
                               .target = fields[1].const_data_ptr<float>(),
                               .rows = prediction.numel() / prediction.size(kVariable),
                               .times = static_cast<uint32_t>(prediction.size(kTime)),
                               .members = static_cast<uint32_t>(prediction.size(kEnsemble)),
                               .nodes = static_cast<uint32_t>(prediction.size(kGrid)),
                               .variables = static_cast<int>(prediction.size(kVariable)),
                               .num_factors = static_cast<int>(fields.size()) - 2,
                               .factors = {},
                               .scale = static_cast<float>(scale)};
  for (size_t i = 2; i < fields.size(); ++i) {
    const at::Tensor& factor = fields[i];
    const auto stride = [&](Axis axis) { return factor.size(axis) == 1 ? 0 : factor.stride(axis); };
    s.factors[i - 2] = {factor.const_data_ptr<float>(), stride(kTime), stride(kGrid),
                        stride(kVariable)};
  }
  return s;
}

struct SquaredErrors : torch::autograd::Function<SquaredErrors> {
  static at::Tensor forward(AutogradContext* ctx, at::TensorList fields, double scale) {
    ctx->save_for_backward(fields.vec());
    ctx->saved_data["scale"] = scale;
    const at::Tensor sums = at::empty(fields[0].sizes().slice(0, kVariable), fields[0].options());
    model::cuda::squared_errors(arguments(fields.vec(), scale), sums.data_ptr<float>(),
                                model::stream_of(sums));
    model::count_work("loss", {fields[0], fields[1], sums});
    return sums;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list fields = ctx->get_saved_variables();
    variable_list result(fields.size() + 1);
    result[0] = at::empty_like(fields[0]);
    model::cuda::squared_errors_backward(arguments(fields, ctx->saved_data["scale"].toDouble()),
                                         gradients[0].contiguous().const_data_ptr<float>(),
                                         result[0].data_ptr<float>(), model::stream_of(result[0]));
    model::count_work("loss", {fields[0], fields[1], gradients[0], result[0]});
    return result;
  }
};

}  // namespace

bool squared_errors_fit(const at::Tensor& prediction, const at::Tensor& target,
                        const std::vector<at::Tensor>& factors) {
  const auto fits = [](const at::Tensor& x) {
    return x.is_cuda() && x.scalar_type() == at::kFloat;
  };
  const auto acts_there = [&](const at::Tensor& x) {
    const auto alike = [&](Axis axis) {
      return x.size(axis) == 1 || x.size(axis) == prediction.size(axis);
    };
    return fits(x) && !x.requires_grad() && x.size(kBatch) == 1 && x.size(kEnsemble) == 1 &&
           alike(kTime) && alike(kGrid) && alike(kVariable);
  };
  constexpr int64_t kMostRows = int64_t{1} << 32;
  return fits(prediction) && fits(target) && prediction.is_contiguous() &&
         prediction.numel() < kMostRows * prediction.size(kVariable) && target.is_contiguous() &&
         prediction.sizes() == target.sizes() && !target.requires_grad() &&
         factors.size() <= model::cuda::kMaxErrorFactors &&
         std::all_of(factors.begin(), factors.end(), acts_there);
}

at::Tensor squared_errors(const at::Tensor& prediction, const at::Tensor& target,
                          const std::vector<at::Tensor>& factors, double scale) {
  variable_list fields{prediction, target};
  fields.insert(fields.end(), factors.begin(), factors.end());
  return SquaredErrors::apply(at::TensorList(fields), scale);
}

#else

bool squared_errors_fit(const at::Tensor&, const at::Tensor&, const std::vector<at::Tensor>&) {
  return false;
}
at::Tensor squared_errors(const at::Tensor&, const at::Tensor&, const std::vector<at::Tensor>&,
                          double) {
  throw Error("this program was built without CUDA");
}

#endif

}  // namespace aifs::train
