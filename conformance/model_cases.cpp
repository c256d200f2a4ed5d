// SPDX-License-Identifier: Apache-2.0
// One forward and training case: output, loss, gradients, three steps of the program's optimiser
// (train/training_step.h), prediction.
#include <ATen/ATen.h>

#include <cmath>
#include <regex>

#include "conformance/case_loss.h"
#include "conformance/cases.h"
#include "conformance/model_compare.h"
#include "conformance/tensors.h"
#include "train/rollout.h"
#include "train/training_step.h"

namespace aifs::conformance {

namespace {

// Weights after more updates than these are as far off as those of a training run may be.
constexpr size_t kFewUpdates = 3;
constexpr double kManyUpdates = 1e-4;

// The betas and so on of the case, or what all cases without them use.
train::AdamWOptions adamw_options(const Json& json) {
  const Json o = json.value("optimizer", Json::object());
  train::AdamWOptions options;
  options.beta1 = o.contains("betas") ? o["betas"].at(0).get<double>() : 0.9;
  options.beta2 = o.contains("betas") ? o["betas"].at(1).get<double>() : 0.95;
  options.eps = o.value("eps", 1e-8);
  options.weight_decay = o.value("weight_decay", 0.01);
  return options;
}

// The largest element of a gradient, "... clamped to +-32"; the package's own where nothing is
// said.
double clip_limit(const Json& json) {
  constexpr double kOfPackage = 32.0;
  const std::string text =
      json.value("optimizer", Json::object()).value("clip", json.value("adamw", std::string()));
  static const std::regex kNumber(R"((?:\+-|value ) ?(\d+(?:\.\d+)?(?:e-?\d+)?))");
  std::smatch match;
  return std::regex_search(text, match, kNumber) ? std::stod(match[1]) : kOfPackage;
}

train::StepOptions step_options(const Json& json, at::ScalarType dtype) {
  train::StepOptions options;
  options.train.precision =
      dtype == at::kDouble ? train::Precision::kFp64 : train::Precision::kFp32;
  options.optimizer.adamw = adamw_options(json);
  options.optimizer.clip = train::ClipKind::kValue;
  options.optimizer.clip_limit = clip_limit(json);
  return options;
}

// One case with its data: batches of every dataset, truth, loss, and what changes per step.
struct TrainingCase {
  CaseModel model;
  std::vector<CaseDataset> datasets;
  std::vector<train::ForecastColumns> columns;
  std::vector<train::LossPtr> losses;
  std::vector<at::Tensor> batches;
  std::vector<at::Tensor> noise;         // per step, or empty
  std::vector<at::Tensor> output_masks;  // per dataset
  int64_t steps;
  bool has_trained_step;       // loss and gradients come from the reference's own training step
  parallel::ProcessMesh mesh;  // of one rank
  std::optional<train::TrainingStep> training;

  TrainingCase(const CaseFile& file, const SafetensorsFile& tensors, at::ScalarType dtype)
      : model(file, tensors, dtype),
        datasets(datasets_of(file.json)),
        steps(file.json.value("rollout_steps", int64_t{1})),
        has_trained_step(file.json.contains("training_loss")) {
    if (steps < 1) throw NotSupported(concat("rollout_steps ", steps));
    for (const CaseDataset& dataset : datasets) {
      columns.emplace_back(dataset.variables, at::kCPU);
      output_masks.push_back(output_mask_of(file, tensors, model.graph, dataset));
      const LossUse use{.dtype = dtype,
                        .nodes = model.nodes_of(dataset.name),
                        .output_mask = output_masks.back()};
      losses.push_back(case_loss(file.json, tensors, dataset, use));
      batches.push_back(read_tensor(tensors, dataset.prefix + "batch", dtype));
    }
    for (int64_t step = 0; tensors.contains(concat("noise/", step)); ++step)
      noise.push_back(read_tensor(tensors, concat("noise/", step), dtype));
    const auto& layout = model.network->layout();
    train::StepParts parts{.parameters = model.parameters,
                           .network = *model.network,
                           .datasets = {},
                           .window = {layout.times_in, layout.times_out},
                           .mesh = mesh};
    for (size_t d = 0; d < datasets.size(); ++d)
      parts.datasets.push_back({datasets[d].variables, losses[d]});
    training.emplace(step_options(file.json, dtype), parts);
    training->begin();
  }

  // Inputs of the first step.
  std::vector<at::Tensor> inputs() const {
    std::vector<at::Tensor> x;
    for (size_t d = 0; d < datasets.size(); ++d) {
      x.push_back(batches[d]
                      .narrow(1, 0, model.network->layout(d).times_in)
                      .index_select(-1, columns[d].inputs)
                      .repeat({1, 1, model.network->num_members(), 1, 1}));
    }
    return x;
  }

  // All variables at the times that a step predicts.
  at::Tensor truth(size_t d, int64_t step) const {
    const auto& layout = model.network->layout(d);
    // An autoencoder has nothing but its input to predict.
    const bool of_input = batches[d].size(1) < layout.times_in + layout.times_out;
    return batches[d].narrow(1, (of_input ? 0 : layout.times_in) + step * layout.times_out,
                             layout.times_out);
  }
};

// What one forward and backward pass gives.
struct PassResult {
  double loss = 0.0;
  std::vector<double> step_losses;
  std::vector<std::vector<at::Tensor>> x, y;  // per step and dataset
};

// Loss of the present weights, with the noise and the masks of the case; gradients are left in the
// parameters. `number` is that of the step.
PassResult forward_backward(TrainingCase& c, int64_t number) {
  PassResult result;
  c.training->start(number);
  std::vector<at::Tensor> x = c.inputs();
  at::Tensor total;
  for (int64_t step = 0; step < c.steps; ++step) {
    model::StepContext context{.step = step};
    if (!c.noise.empty()) context.noise = c.noise.at(static_cast<size_t>(step));
    const std::vector<at::Tensor> y = c.model.network->forward(x, context);
    at::Tensor loss;
    for (size_t d = 0; d < y.size(); ++d) {
      const at::Tensor value = (*c.losses[d])(y[d], c.truth(d, step));
      loss = loss.defined() ? loss + value : value;
    }
    result.step_losses.push_back(loss.item<double>());
    total = total.defined() ? total + loss : loss;
    result.x.emplace_back();
    for (size_t d = 0; d < x.size();
         ++d)  // the reference stores it after its residual worked on it
      result.x.back().push_back(c.model.network->prepare(x[d], d).detach());
    result.y.push_back(y);
    for (size_t d = 0; step + 1 < c.steps && d < y.size(); ++d)
      x[d] = train::advance_inputs(x[d], y[d], c.truth(d, step), c.columns[d], c.output_masks[d]);
  }
  total = total / static_cast<double>(c.steps);
  c.training->backward(total, {.rollout = c.steps});
  c.training->end_passes();
  result.loss = total.item<double>();
  return result;
}

void compare_pass(const TrainingCase& c, const PassResult& pass, const SafetensorsFile& tensors,
                  const Expected& expected, const ModelLimits& limits, Comparison& comparison) {
  const SafetensorsFile& stored = expected.tensors();
  for (size_t step = 0; step < pass.y.size(); ++step) {
    const std::string in_step = tensors.contains("step0/y_pred") ? concat("step", step, "/") : "";
    for (size_t d = 0; d < c.datasets.size(); ++d) {
      const std::string prefix = in_step + c.datasets[d].prefix;
      if (tensors.contains(prefix + "x")) {
        const at::Tensor x = read_tensor(tensors, prefix + "x").expand_as(pass.x[step][d]);
        comparison.add(prefix + "x", max_difference(pass.x[step][d], x),
                       step == 0 && at::equal(pass.x[step][d], c.inputs()[d])
                           ? 0.0
                           : widened(kModelFp32.output, step));
      }
      if (!stored.contains(prefix + "y_pred")) continue;
      compare_output(prefix + "y_pred", pass.y[step][d], expected, widened(limits.output, step),
                     comparison);
    }
    if (stored.contains(in_step + "loss") && !in_step.empty()) {
      compare_loss(in_step + "loss", pass.step_losses[step], expected, widened(limits.loss, step),
                   comparison);
    }
  }
  const size_t last = pass.y.size() - 1;
  compare_loss("loss", pass.loss, expected, widened(limits.loss, last), comparison);
  compare_gradients(c.model.parameters, expected, widened(limits.gradient, last),
                    c.has_trained_step, comparison);
}

double learning_rate(const Json& json) {
  if (json.contains("optimizer")) return json["optimizer"].at("lr").get<double>();
  const std::string text = json.value("adamw", std::string());
  const size_t at = text.find("lr ");
  if (at == std::string::npos) throw NotSupported("an optimiser without learning rate");
  return std::stod(text.substr(at + 3));
}

void compare_optimizer(const CaseFile& file, TrainingCase& c, const Expected& expected,
                       const ModelLimits& limits, Comparison& comparison) {
  if (!expected.tensors().contains("adamw_losses")) return;
  const std::vector<double> losses = expected.tensors().doubles("adamw_losses");
  const double limit = widened(limits.step_losses, static_cast<size_t>(c.steps - 1));
  const double own_error = expected.own_error("adamw_losses");
  for (size_t step = 0; step < losses.size(); ++step) {
    const double value = forward_backward(c, static_cast<int64_t>(step)).loss;
    comparison.add(concat("adamw_losses[", step, "]"), relative_difference(value, losses[step]),
                   limit, own_error / std::abs(losses[step]));
    if (step + 1 == losses.size()) break;
    comparison.require(c.training->finish_gradients(), "gradients are not finite");
    c.training->update(learning_rate(file.json));
    c.training->finish(/*updated=*/true);
  }
  const size_t updates = losses.size() - 1;
  const bool is_double = c.model.parameters.dtype() == at::kDouble;
  compare_parameters(c.model.parameters, expected, concat("after", updates, "/"),
                     widened(is_double || updates <= kFewUpdates ? limits.parameters : kManyUpdates,
                             static_cast<size_t>(c.steps - 1)),
                     is_double, comparison);
}

void check_training(const CaseFile& file, const SafetensorsFile& tensors, const Expected& expected,
                    at::ScalarType dtype, Comparison& comparison) {
  const ModelLimits& limits = dtype == at::kDouble ? kModelFp64 : kModelFp32;
  TrainingCase c(file, tensors, dtype);
  for (size_t d = 0; d < c.datasets.size(); ++d) {
    const CaseDataset& dataset = c.datasets[d];
    const LossUse use{.nodes = c.model.nodes_of(dataset.name), .output_mask = c.output_masks[d]};
    compare_scalers(file.json, tensors, dataset, use, comparison);
  }
  const PassResult pass = forward_backward(c, /*number=*/0);
  compare_pass(c, pass, tensors, expected, limits, comparison);
  if (tensors.contains("residual_output")) {
    const at::Tensor all = read_tensor(tensors, "residual_output");
    const at::Tensor guess = c.model.network->residual(c.inputs()[0]);
    const at::Tensor stored = all.index_select(-1, c.columns[0].input_prognostic);
    comparison.add("residual_output", max_difference_of_repeated(guess, stored), kModelFp32.output);
  }
  compare_optimizer(file, c, expected, limits, comparison);
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
    std::optional<SafetensorsFile> twin;
    if (file.f64_path()) twin.emplace(*file.f64_path());
    check_training(file, tensors, Expected(tensors, twin ? &*twin : nullptr), at::kFloat,
                   comparison);
    check_prediction(file, tensors, comparison);
  });
  if (const auto f64 = file.f64_path()) {
    report.run("model", file.name + ".f64", [&](Comparison& comparison) {
      const SafetensorsFile twin(*f64);
      check_training(file, file.tensors(), Expected(twin), at::kDouble, comparison);
    });
  }
}

}  // namespace aifs::conformance
