// SPDX-License-Identifier: Apache-2.0
#include "model/layers/bounding.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/check.h"

namespace aifs::model {

namespace {

constexpr double kLeak = 0.01;

bool is_normalized(BoundingKind kind) {
  return kind == BoundingKind::kNormalizedRelu || kind == BoundingKind::kNormalizedLeakyRelu;
}

bool is_fraction(BoundingKind kind) {
  return kind == BoundingKind::kFraction || kind == BoundingKind::kLeakyFraction;
}

int64_t output_column(const OutputVariables& outputs, const std::string& name,
                      const std::string& path) {
  const auto found = std::find(outputs.names.begin(), outputs.names.end(), name);
  if (found == outputs.names.end()) {
    throw ConfigError(path, concat("'", name, "' is not a variable that the model predicts"),
                      nearest_names(name, outputs.names));
  }
  return found - outputs.names.begin();
}

at::Tensor leaky_clamp(const at::Tensor& x, double low, double high) {
  const at::Tensor below = low + kLeak * (x - low);
  const at::Tensor above = high + kLeak * (x - high);
  return at::where(x < low, below, at::where(x > high, above, x));
}

// The columns x one by one, before any total.
at::Tensor bounded(const BoundingOptions& options, const at::Tensor& thresholds,
                   const at::Tensor& x) {
  switch (options.kind) {
    case BoundingKind::kRelu:
      return at::relu(x);
    case BoundingKind::kLeakyRelu:
      return at::leaky_relu(x, kLeak);
    case BoundingKind::kHardtanh:
    case BoundingKind::kFraction:
      return at::hardtanh(x, options.min_val, options.max_val);
    case BoundingKind::kLeakyHardtanh:
    case BoundingKind::kLeakyFraction:
      return leaky_clamp(x, options.min_val, options.max_val);
    case BoundingKind::kNormalizedRelu:
      return at::relu(x - thresholds) + thresholds;
    case BoundingKind::kNormalizedLeakyRelu:
      return at::leaky_relu(x - thresholds, kLeak) + thresholds;
  }
  return x;
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using ElementWise = std::function<at::Tensor(const at::Tensor&)>;

// f of x, element by element, and its derivative.
struct ValueAndSlope {
  at::Tensor value, slope;
  ValueAndSlope(const at::Tensor& of, const ElementWise& f) {
    const at::AutoGradMode with_grad(true);
    const at::Tensor x = of.detach().set_requires_grad(true), y = f(x);
    slope = torch::autograd::grad({y}, {x}, {at::ones_like(y)})[0];
    value = y.detach();
  }
};

// y with f of some columns in their place. Both passes copy all columns once and no more.
struct ReplaceColumns : torch::autograd::Function<ReplaceColumns> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& y, const at::Tensor& columns,
                            const ElementWise& f) {
    const ValueAndSlope bounded(y.index_select(-1, columns), f);
    ctx->save_for_backward({columns, bounded.slope});
    return y.detach().index_copy(-1, columns, bounded.value);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &columns = saved[0], &slope = saved[1], &g = gradients[0];
    return {g.index_copy(-1, columns, g.index_select(-1, columns) * slope), at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

void BoundingOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"which limit"});
  b.text_list("variables", variables, {"the predicted variables it acts on"});
  b.number("min_val", min_val, {}, {"lower limit of hardtanh and fraction kinds", "normalised"});
  b.number("max_val", max_val, {}, {"upper limit of hardtanh and fraction kinds", "normalised"});
  b.text("total_var", total_var, {"fraction kinds: the variable that multiplies the fraction"});
  b.number_list("thresholds", thresholds, {},
                {"normalized kinds: one lower limit per variable", "physical unit"});
  b.text_list("normalizer", normalizer,
              {"normalized kinds: mean-std or std per variable, how its threshold is normalised"});
  b.text_list("datasets", datasets,
              {"of several datasets, those that it is for; empty: all that predict its variables"});
}

void BoundingOptions::validate(const std::string& path) const {
  if (variables.empty()) throw ConfigError(path + ".variables", "names no variable");
  if (is_fraction(kind) == total_var.empty()) {
    throw ConfigError(path + ".total_var", is_fraction(kind) ? "a fraction needs its total"
                                                             : "is for the fraction kinds only");
  }
  if (min_val > max_val) throw ConfigError(path + ".min_val", "is above max_val");
  const size_t wanted = is_normalized(kind) ? variables.size() : 0;
  if (thresholds.size() != wanted) {
    throw ConfigError(path + ".thresholds",
                      concat("has ", thresholds.size(), " values, ", wanted, " are needed"));
  }
  if (normalizer.size() != wanted) {
    throw ConfigError(path + ".normalizer",
                      concat("has ", normalizer.size(), " values, ", wanted, " are needed"));
  }
  for (const std::string& norm : normalizer) {
    if (norm != "mean-std" && norm != "std") {
      throw ConfigError(path + ".normalizer",
                        concat("got '", norm, "', allowed is mean-std | std"));
    }
  }
}

Bounding::Bounding(const ParameterScope& scope, const BoundingOptions& options,
                   const OutputVariables& outputs, const std::string& path)
    : options_(options) {
  options_.validate(path);
  std::vector<int64_t> columns;
  for (const std::string& name : options.variables) {
    columns.push_back(output_column(outputs, name, path + ".variables"));
  }
  if (is_fraction(options.kind)) {
    total_ = output_column(outputs, options.total_var, path + ".total_var");
  }
  if (is_normalized(options.kind)) {
    std::vector<double> values;
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto column = static_cast<size_t>(columns[i]);
      const double centre = options.normalizer[i] == "std" ? 0.0 : outputs.mean.at(column);
      values.push_back((options.thresholds[i] - centre) / outputs.stdev.at(column));
    }
    // Rounded to fp32 as in the reference, then widened if the model is fp64.
    thresholds_ = scope.add_buffer(
        "norm_min_val", at::tensor(values, at::kDouble).to(at::kFloat).to(scope.dtype()));
  } else {
    std::sort(columns.begin(), columns.end());
  }
  columns_ = scope.set().add_constant(at::tensor(columns, at::kLong));
}

at::Tensor Bounding::limit_(const at::Tensor& y, bool slope_wanted) const {
  AIFS_CHECK(is_elementwise(), "a fraction needs its total");
  const at::Tensor x = y.index_select(-1, columns_);
  if (!slope_wanted) {
    y.index_copy_(-1, columns_, bounded(options_, thresholds_, x));
    return {};
  }
  const ValueAndSlope limited(
      x, [this](const at::Tensor& some) { return bounded(options_, thresholds_, some); });
  y.index_copy_(-1, columns_, limited.value);
  return limited.slope;
}

bool independent(const std::vector<Bounding>& boundings) {
  std::set<std::string> seen;
  for (const Bounding& bounding : boundings) {
    if (!bounding.is_elementwise()) return false;
    for (const std::string& name : bounding.variables()) {
      if (!seen.insert(name).second) return false;
    }
  }
  return true;
}

at::Tensor Bounding::forward(const at::Tensor& y) const {
  if (total_ < 0 && y.requires_grad()) {
    return ReplaceColumns::apply(y, columns_, ElementWise([this](const at::Tensor& x) {
                                   return bounded(options_, thresholds_, x);
                                 }));
  }
  at::Tensor x = bounded(options_, thresholds_, y.index_select(-1, columns_));
  if (total_ >= 0) x = x * y.select(-1, total_).unsqueeze(-1);
  return y.index_copy(-1, columns_, x);
}

}  // namespace aifs::model
