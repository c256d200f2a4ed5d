// SPDX-License-Identifier: Apache-2.0
#include "model/recompute.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local bool unread_now = false;

class Unread {
 public:
  explicit Unread(bool unread) : before_(unread_now) { unread_now = unread; }
  ~Unread() { unread_now = before_; }
  Unread(const Unread&) = delete;
  Unread& operator=(const Unread&) = delete;

 private:
  bool before_;
};

struct PartHolder : torch::CustomClassHolder {
  TensorsFunction part;
};

struct Recompute : torch::autograd::Function<Recompute> {
  // The first input is a dummy that requires a gradient: parameters get theirs even where none of
  // the inputs proper needs one.
  static variable_list forward(AutogradContext* ctx, at::TensorList dummy_and_inputs,
                               const TensorsFunction& part) {
    const variable_list inputs(dummy_and_inputs.begin() + 1, dummy_and_inputs.end());
    ctx->save_for_backward(inputs);
    auto holder = c10::make_intrusive<PartHolder>();
    holder->part = part;
    ctx->saved_data["part"] = c10::IValue::make_capsule(std::move(holder));
    const at::NoGradGuard no_grad;
    const Unread scope(false);
    return part(inputs);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto holder =
        c10::static_intrusive_pointer_cast<PartHolder>(ctx->saved_data["part"].toCapsule());
    variable_list inputs;
    for (const at::Tensor& saved : ctx->get_saved_variables()) {
      inputs.push_back(saved.detach().set_requires_grad(saved.requires_grad()));
    }
    variable_list results, result_gradients;
    {
      const at::AutoGradMode with_grad(true);
      const Unread scope(true);
      const variable_list all = holder->part(inputs);
      for (size_t i = 0; i < all.size(); ++i) {
        if (!all[i].requires_grad() || !gradients[i].defined()) continue;
        results.push_back(all[i]);
        result_gradients.push_back(gradients[i]);
      }
    }
    // Gradients of parameters are added where they always are, those of the inputs come back.
    torch::autograd::backward(results, result_gradients);
    variable_list back{at::Tensor()};
    for (const at::Tensor& input : inputs)
      back.push_back(input.grad());
    back.emplace_back();  // of `part`
    return back;
  }
};

}  // namespace

bool results_unread() {
  return unread_now;
}

std::vector<at::Tensor> recompute(const TensorsFunction& part,
                                  const std::vector<at::Tensor>& inputs) {
  if (!at::GradMode::is_enabled()) return part(inputs);
  variable_list all{at::zeros({0}).set_requires_grad(true)};
  all.insert(all.end(), inputs.begin(), inputs.end());
  return Recompute::apply(at::TensorList(all), part);
}

}  // namespace aifs::model
