// SPDX-License-Identifier: Apache-2.0
#include "model/base/recompute.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local bool unread_now = false;

struct PartHolder : torch::CustomClassHolder {
  TensorsFunction part;
  HostStash* stash = nullptr;
  HostStash::ItemPtr state;  // null without a stash
  std::vector<bool> state_requires_grad;
};

struct Recompute : torch::autograd::Function<Recompute> {
  // The first input is a dummy that requires a gradient: parameters get theirs even where none of
  // the inputs proper needs one.
  static variable_list forward(AutogradContext* ctx, at::TensorList dummy_and_inputs,
                               const TensorsFunction& part, const StateChange& change) {
    const variable_list inputs(dummy_and_inputs.begin() + 1, dummy_and_inputs.end());
    ctx->set_materialize_grads(false);
    const auto state_end = inputs.begin() + static_cast<std::ptrdiff_t>(change.width);
    auto holder = c10::make_intrusive<PartHolder>();
    holder->part = part;
    if (change.stash) {
      const variable_list state(inputs.begin(), state_end);
      holder->stash = change.stash;
      holder->state = change.stash->put(state, change.stays, change.num_here);
      for (const at::Tensor& tensor : state)
        holder->state_requires_grad.push_back(tensor.requires_grad());
    }
    ctx->save_for_backward({change.stash ? state_end : inputs.begin(), inputs.end()});
    ctx->saved_data["part"] = c10::IValue::make_capsule(std::move(holder));
    if (change.ends_part && results_unread()) {
      variable_list unread;  // of one element each
      for (auto tensor = inputs.begin(); tensor != state_end; ++tensor) {
        unread.push_back(at::empty_strided(tensor->sizes(), std::vector<int64_t>(tensor->dim(), 0),
                                           tensor->options().requires_grad(false)));
      }
      return unread;
    }
    const at::NoGradGuard no_grad;
    const ResultsRead scope;
    return part(inputs);
  }

  static variable_list inputs_of(AutogradContext* ctx, const PartHolder& holder) {
    variable_list inputs;
    if (holder.stash) inputs = holder.stash->take(holder.state);
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i].set_requires_grad(holder.state_requires_grad[i]);
    for (const at::Tensor& saved : ctx->get_saved_variables())
      inputs.push_back(saved.detach().set_requires_grad(saved.requires_grad()));
    return inputs;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto holder =
        c10::static_intrusive_pointer_cast<PartHolder>(ctx->saved_data["part"].toCapsule());
    const variable_list inputs = inputs_of(ctx, *holder);
    variable_list results, result_gradients;
    {
      const at::AutoGradMode with_grad(true);
      const ResultsRead scope(false);
      const variable_list all = holder->part(inputs);
      for (size_t i = 0; i < all.size(); ++i) {
        if (!all[i].requires_grad() || !gradients[i].defined()) continue;
        results.push_back(all[i]);
        result_gradients.push_back(gradients[i]);
      }
    }
    // Gradients of parameters are added where they always are, those of the inputs come back.
    if (!results.empty()) torch::autograd::backward(results, result_gradients);
    variable_list back{at::Tensor()};
    for (const at::Tensor& input : inputs)
      back.push_back(input.grad());
    back.resize(back.size() + 2);  // of `part` and `change`
    return back;
  }
};

}  // namespace

bool results_unread() {
  return unread_now;
}

ResultsRead::ResultsRead(bool read) : before_(unread_now) {
  unread_now = !read;
}

ResultsRead::~ResultsRead() {
  unread_now = before_;
}

std::vector<at::Tensor> recompute(const TensorsFunction& part,
                                  const std::vector<at::Tensor>& inputs,
                                  const StateChange& change) {
  if (!at::GradMode::is_enabled()) return part(inputs);
  variable_list all{at::zeros({0}).set_requires_grad(true)};
  all.insert(all.end(), inputs.begin(), inputs.end());
  return Recompute::apply(at::TensorList(all), part, change);
}

}  // namespace aifs::model
