// SPDX-License-Identifier: Apache-2.0
#include "train/loss/member_pairs.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "core/check.h"

namespace aifs::train {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kMember = 2;  // axis

struct Pair {
  int64_t a = 0;
  int64_t b = -1;  // -1: the truth
};

// The pairs with the truth first.
std::vector<Pair> pairs_of(int64_t members) {
  std::vector<Pair> pairs;
  for (int64_t i = 0; i < members; ++i)
    pairs.push_back({i, -1});
  for (int64_t i = 0; i < members; ++i) {
    for (int64_t j = i + 1; j < members; ++j)
      pairs.push_back({i, j});
  }
  return pairs;
}

at::Tensor difference(const at::Tensor& x, const at::Tensor& y, const Pair& pair) {
  const at::Tensor a = x.narrow(kMember, pair.a, 1);
  return pair.b < 0 ? a - y : a - x.narrow(kMember, pair.b, 1);
}

// Adds the gradient of a - b to those of a and b.
void add_gradient(const at::Tensor& dx, const at::Tensor& dy, const Pair& pair,
                  const at::Tensor& gradient) {
  dx.narrow(kMember, pair.a, 1).add_(gradient);
  if (pair.b >= 0) {
    dx.narrow(kMember, pair.b, 1).sub_(gradient);
  } else if (dy.defined()) {
    dy.sub_(gradient);
  }
}

struct Holder : torch::CustomClassHolder {
  explicit Holder(Distance function) : distance(std::move(function)) {}
  Distance distance;
};

struct KernelScore : torch::autograd::Function<KernelScore> {
  static double weight(const Pair& pair, int64_t members, double coefficient) {
    return pair.b < 0 ? 1.0 / static_cast<double>(members) : -coefficient;
  }

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y,
                            double coefficient, const c10::intrusive_ptr<Holder>& holder) {
    ctx->save_for_backward({x, y});
    ctx->saved_data["coefficient"] = coefficient;
    ctx->saved_data["distance"] = c10::IValue::make_capsule(holder);
    const int64_t n = x.size(kMember);
    at::Tensor sum;
    for (const Pair& pair : pairs_of(n)) {
      const at::Tensor term =
          holder->distance(difference(x, y, pair)) * weight(pair, n, coefficient);
      sum = sum.defined() ? sum.add_(term) : term;
    }
    return sum;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &y = saved[1];
    const auto holder = ctx->saved_data["distance"].toCapsule();
    const Distance& distance = static_cast<const Holder&>(*holder).distance;
    const double coefficient = ctx->saved_data["coefficient"].toDouble();
    const int64_t n = x.size(kMember);
    const at::Tensor dx = at::zeros_like(x);
    const at::Tensor dy = ctx->needs_input_grad(1) ? at::zeros_like(y) : at::Tensor();
    for (const Pair& pair : pairs_of(n)) {
      at::Tensor q = difference(x.detach(), y.detach(), pair);
      at::Tensor gradient;
      {
        const at::AutoGradMode enabled(true);
        q.set_requires_grad(true);
        const at::Tensor value = distance(q);
        gradient =
            torch::autograd::grad({value}, {q}, {gradients[0] * weight(pair, n, coefficient)})[0];
      }
      add_gradient(dx, dy, pair, gradient);
    }
    return {dx, dy, at::Tensor(), at::Tensor()};
  }
};

struct PairSquareSums : torch::autograd::Function<PairSquareSums> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y,
                            const at::Tensor& weights, at::IntArrayRef axes) {
    ctx->save_for_backward({x, y, weights});
    std::vector<at::Tensor> sums;
    for (const Pair& pair : pairs_of(x.size(kMember))) {
      sums.push_back(
          (difference(x, y, pair).square() * weights).sum(axes, /*keepdim=*/true, at::kDouble));
    }
    return at::cat(sums, kMember);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor x = saved[0].detach(), y = saved[1].detach(), weights = saved[2];
    const at::Tensor dx = at::zeros_like(x);
    const at::Tensor dy = ctx->needs_input_grad(1) ? at::zeros_like(y) : at::Tensor();
    const std::vector<Pair> pairs = pairs_of(x.size(kMember));
    for (size_t p = 0; p < pairs.size(); ++p) {
      const at::Tensor upstream = gradients[0].narrow(kMember, static_cast<int64_t>(p), 1);
      const at::Tensor gradient =
          difference(x, y, pairs[p]) * weights * (2.0 * upstream).to(x.scalar_type());
      add_gradient(dx, dy, pairs[p], gradient);
    }
    return {dx, dy, at::Tensor(), at::Tensor()};
  }
};

void check_members(const at::Tensor& members, const at::Tensor& truth) {
  AIFS_CHECK(members.size(kMember) > 1, "an ensemble score of one member");
  AIFS_CHECK(truth.size(kMember) == 1, "an ensemble score takes one truth, not ",
             truth.size(kMember));
}

}  // namespace

double pair_coefficient(int64_t members, double alpha) {
  const auto n = static_cast<double>(members);
  return alpha / (n * (n - 1.0)) + (1.0 - alpha) / (n * n);
}

at::Tensor kernel_score(const at::Tensor& members, const at::Tensor& truth, double coefficient,
                        const Distance& distance) {
  check_members(members, truth);
  return KernelScore::apply(members, truth, coefficient, c10::make_intrusive<Holder>(distance));
}

at::Tensor absolute(const at::Tensor& x) {
  return x.abs();
}

at::Tensor safe_sqrt(const at::Tensor& x) {
  const at::Tensor positive = x > 0;
  return at::where(positive, at::where(positive, x, at::ones({}, x.options())).sqrt(),
                   at::zeros({}, x.options()));
}

at::Tensor pair_square_sums(const at::Tensor& members, const at::Tensor& truth,
                            const at::Tensor& weights, at::IntArrayRef axes) {
  check_members(members, truth);
  return PairSquareSums::apply(members, truth, weights, axes);
}

}  // namespace aifs::train
