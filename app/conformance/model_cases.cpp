// SPDX-License-Identifier: Apache-2.0
// One forward and training case: output, loss, gradients, three optimiser steps, prediction.
#include <ATen/ATen.h>

#include "app/conformance/cases.h"
#include "app/conformance/model_setup.h"
#include "app/conformance/tensors.h"
#include "train/optimizer.h"

namespace aifs::conformance {

namespace {

// Limits of ../golden/README.md for one precision.
struct Limits {
  double output, loss, gradient, parameters, step_losses;
};
constexpr Limits kSingle{5e-6, 1e-6, 1e-5, 5e-5, 5e-6};
constexpr Limits kDouble{1e-12, 1e-12, 1e-10, 1e-10, 1e-12};
// In fp32 a tensor whose gradients are tiny is compared on the scale of the whole model.
constexpr double kTinyGradient = 1e-4, kTinyLimit = 1e-6;

void compare_gradients(const CaseModel& model, const SafetensorsFile& expected,
                       const Limits& limits, Comparison& comparison) {
  double largest = 0.0;
  for (const auto& [name, entry] : expected.entries()) {
    if (name.starts_with("grad/"))
      largest = std::max(largest, max_abs(read_tensor(expected, name)));
  }
  for (const model::Parameter& parameter : model.parameters.entries()) {
    const std::string name = "grad/" + parameter.name;
    if (!expected.contains(name)) continue;
    const at::Tensor reference = read_tensor(expected, name);
    const double scale = max_abs(reference);
    const bool tiny = model.parameters.dtype() == at::kFloat && scale < kTinyGradient * largest;
    const double error = max_difference(model.parameters.gradient(parameter), reference);
    comparison.add(name, error / (tiny ? largest : std::max(scale, 1e-300)),
                   tiny ? kTinyLimit : limits.gradient);
  }
}

void compare_parameters(const CaseModel& model, const SafetensorsFile& expected,
                        const std::string& prefix, double limit, bool relative,
                        Comparison& comparison) {
  for (const model::Parameter& parameter : model.parameters.entries()) {
    const std::string name = prefix + parameter.name;
    if (!expected.contains(name)) continue;
    const at::Tensor reference = read_tensor(expected, name);
    const double scale = relative ? std::max(max_abs(reference), 1e-300) : 1.0;
    comparison.add(name, max_difference(parameter.tensor, reference) / scale, limit);
  }
}

// Parameters that the reference says get no gradient.
std::vector<std::string> without_gradient(const Json& json) {
  return json.value("parameters_without_gradient", std::vector<std::string>());
}

struct TrainingCase {
  CaseModel model;
  train::PointwiseLoss loss;
  at::Tensor x, target;

  TrainingCase(const CaseFile& file, const SafetensorsFile& tensors, at::ScalarType dtype)
      : model(file, tensors, dtype) {
    const data::VariableTable variables = variables_of(file.json);
    if (file.json.at("loss").at("kind") != "MSE") {
      throw NotSupported("loss " + file.json["loss"]["kind"].get<std::string>());
    }
    loss.scalers = stored_scalers(tensors, file.json["loss"].at("scalers_in_order"), dtype);
    const at::Tensor batch = read_tensor(tensors, "batch", dtype);
    const auto& layout = model.network->layout();
    const auto columns = [](const std::vector<int64_t>& list) {
      return at::tensor(list, at::kLong);
    };
    x = batch.narrow(1, 0, layout.times_in).index_select(-1, columns(variables.input_columns()));
    target = batch.narrow(1, layout.times_in, layout.times_out)
                 .index_select(-1, columns(variables.output_columns()));
  }

  // Loss of the present weights; gradients are left in the parameters.
  double forward_backward(at::Tensor* prediction = nullptr) {
    model.parameters.zero_gradients();
    const at::Tensor y = model.network->forward(x);
    const at::Tensor value = loss(y, target);
    value.backward();
    if (prediction) *prediction = y.detach();
    return value.item<double>();
  }
};

void check_training(const CaseFile& file, const SafetensorsFile& tensors,
                    const SafetensorsFile& expected, at::ScalarType dtype, Comparison& comparison) {
  const Limits& limits = dtype == at::kDouble ? kDouble : kSingle;
  TrainingCase run(file, tensors, dtype);
  if (tensors.contains("x")) {
    comparison.add("x", max_difference(run.x, read_tensor(tensors, "x")), 0.0);
  }
  at::Tensor y;
  const double loss = run.forward_backward(&y);
  const double scale = dtype == at::kDouble ? max_abs(read_tensor(expected, "y_pred")) : 1.0;
  comparison.add("y_pred", max_difference(y, read_tensor(expected, "y_pred")) / scale,
                 limits.output);
  comparison.add("loss", relative_difference(loss, expected.doubles("loss").at(0)), limits.loss);
  compare_gradients(run.model, expected, limits, comparison);

  const Json& o = file.json.at("optimizer");
  train::AdamWOptions options;
  options.beta1 = o.at("betas").at(0).get<double>();
  options.beta2 = o.at("betas").at(1).get<double>();
  options.eps = o.at("eps").get<double>();
  options.weight_decay = o.at("weight_decay").get<double>();
  train::AdamW optimizer(run.model.parameters, options);
  optimizer.exclude(without_gradient(file.json));
  const std::vector<double> losses = expected.doubles("adamw_losses");
  for (size_t step = 0; step < losses.size(); ++step) {
    const double value = run.forward_backward();
    comparison.add(concat("adamw_losses[", step, "]"), relative_difference(value, losses[step]),
                   limits.step_losses);
    if (step + 1 == losses.size()) break;
    train::clip_gradients(run.model.parameters.flat_gradients(), train::ClipKind::kValue, 32.0);
    optimizer.step(o.at("lr").get<double>());
  }
  compare_parameters(run.model, expected, "after3/", limits.parameters, dtype == at::kDouble,
                     comparison);
}

// Physical input to physical output through normaliser and network.
void check_prediction(const CaseFile& file, const SafetensorsFile& tensors,
                      Comparison& comparison) {
  if (!tensors.contains("predict/input")) return;
  CaseModel model(file, tensors, at::kFloat);
  const data::VariableTable variables = variables_of(file.json);
  const at::Tensor mul = read_tensor(tensors, "normalizer/mul");
  const at::Tensor add = read_tensor(tensors, "normalizer/add");
  const at::Tensor in = at::tensor(variables.input_columns(), at::kLong);
  const at::Tensor out = at::tensor(variables.output_columns(), at::kLong);
  const at::Tensor x = read_tensor(tensors, "predict/input")
                           .mul(mul.index_select(0, in))
                           .add(add.index_select(0, in))
                           .unsqueeze(2);
  const at::Tensor y = model.network->forward(x).detach();
  const at::Tensor out_mul = mul.index_select(0, out);
  const at::Tensor physical = (y - add.index_select(0, out)) / out_mul;
  const at::Tensor expected = read_tensor(tensors, "predict/output");
  // 5e-6 of the normaliser's deviation plus 2e-7 of the value.
  const at::Tensor allowed = 5e-6 / out_mul.to(at::kDouble) + 2e-7 * expected.to(at::kDouble).abs();
  const at::Tensor error = (physical.to(at::kDouble) - expected.to(at::kDouble)).abs();
  comparison.add("predict/output (in limits)", (error / allowed).max().item<double>(), 1.0);
}

}  // namespace

void run_model_case(const CaseFile& file, Report& report) {
  report.run("model", file.name, [&](Comparison& comparison) {
    const SafetensorsFile tensors = file.tensors();
    check_training(file, tensors, tensors, at::kFloat, comparison);
    check_prediction(file, tensors, comparison);
  });
  if (const auto f64 = file.f64_path()) {
    report.run("model", file.name + ".f64", [&](Comparison& comparison) {
      check_training(file, file.tensors(), SafetensorsFile(*f64), at::kDouble, comparison);
    });
  }
}

}  // namespace aifs::conformance
