// SPDX-License-Identifier: Apache-2.0
// Training in mixed precision on the CPU, against the reference's under autocast. A case names a
// model case in a folder beside its own, whose weights and batch it takes; its figures are of
// bfloat16 runs, which differ among themselves: limits are wide, and gradients are compared by
// direction.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>

#include "conformance/case_loss.h"
#include "conformance/cases.h"
#include "conformance/model_setup.h"
#include "conformance/tensors.h"
#include "model/base/precision.h"
#include "train/training_step.h"

namespace aifs::conformance {

namespace {

using train::Precision;

constexpr double kOutput = 2e-2, kLoss = 2e-3, kStepLoss = 1e-2;
constexpr double kCosine = 0.97, kCosineAll = 0.999;
// fp16 has three more bits; ten times the differences of the reference.
constexpr double kHalfFactor = 10.0;
// A tensor whose gradient is this small against the largest is noise of the others.
constexpr double kNoise = 1e-4;

// The model, batch and loss of a model case with one dataset and one step, and steps of training.
struct MixedCase {
  CaseFile file;
  SafetensorsFile tensors;
  CaseModel model;
  CaseDataset dataset;
  parallel::ProcessMesh mesh;  // of one rank
  train::Batches batch;
  std::optional<train::TrainingStep> step;

  MixedCase(const fs::path& path, Precision precision)
      : file(path),
        tensors(file.tensors()),
        model(file, tensors, precision),
        dataset(only_dataset(file.json)) {
    if (file.json.value("rollout_steps", int64_t{1}) != 1 || tensors.contains("noise/0"))
      throw NotSupported("mixed precision with several steps or members");
    batch.emplace_back().values = read_tensor(tensors, dataset.prefix + "batch", at::kFloat);
    batch[0].anchors.resize(static_cast<size_t>(batch[0].values.size(0)));
    const auto& layout = model.network->layout();
    const train::LossPtr loss = case_loss(
        file.json, tensors, dataset, {.of_outputs = true, .nodes = model.nodes_of(dataset.name)});
    train::StepOptions options{.optimizer = optimizer_options(file.json)};
    options.train.precision = precision;
    step.emplace(options, train::StepParts{.parameters = model.parameters,
                                           .network = *model.network,
                                           .datasets = {{dataset.variables, loss}},
                                           .window = {layout.times_in, layout.times_out},
                                           .mesh = mesh});
    step->begin();
  }

  at::Tensor prediction() {
    const at::NoGradGuard no_grad;
    at::Tensor result;
    step->forecast(step->values_of(batch), {},
                   [&](const train::ForecastStep& s) { result = s.prediction; });
    return result;
  }

  // The loss; its gradients are those of the parameters then.
  double add_gradients() {
    step->start(0);
    const double loss = step->run_pass(batch, {});
    step->end_passes();
    return loss;
  }

 private:
  static CaseDataset only_dataset(const Json& json) {
    std::vector<CaseDataset> datasets = datasets_of(json);
    if (datasets.size() != 1) throw NotSupported("mixed precision with several datasets");
    return datasets[0];
  }

  static train::OptimizerOptions optimizer_options(const Json& json) {
    train::OptimizerOptions options;
    options.clip = train::ClipKind::kValue;
    options.clip_limit = 32.0;
    if (!json.contains("optimizer") || !json["optimizer"].is_object()) return options;
    const Json& o = json["optimizer"];
    options.adamw.beta1 = o.at("betas").at(0).get<double>();
    options.adamw.beta2 = o.at("betas").at(1).get<double>();
    options.adamw.eps = o.at("eps").get<double>();
    options.adamw.weight_decay = o.at("weight_decay").get<double>();
    return options;
  }
};

double cosine(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kDouble).flatten(), y = b.to(at::kDouble).flatten();
  return (x.dot(y) / (x.norm() * y.norm())).item<double>();
}

void compare_gradients(const MixedCase& run, Comparison& comparison) {
  std::vector<at::Tensor> ours, theirs;
  double largest = 0.0;
  for (const auto& [name, entry] : run.tensors.entries()) {
    if (name.starts_with("grad/")) {
      largest = std::max(largest, max_abs(read_tensor(run.tensors, name)));
    }
  }
  for (const model::Parameter& parameter : run.model.parameters.entries()) {
    const std::string name = "grad/" + parameter.name;
    if (!run.tensors.contains(name)) continue;
    const at::Tensor reference = read_tensor(run.tensors, name);
    const at::Tensor gradient = run.model.parameters.gradient(parameter);
    comparison.require(gradient.scalar_type() == at::kFloat, name + " is not fp32");
    ours.push_back(gradient.flatten());
    theirs.push_back(reference.flatten());
    if (max_abs(reference) < kNoise * largest) continue;
    comparison.add("1 - cosine of " + name, 1.0 - cosine(gradient, reference), 1.0 - kCosine);
  }
  comparison.add("1 - cosine of all gradients", 1.0 - cosine(at::cat(ours), at::cat(theirs)),
                 1.0 - kCosineAll);
}

void check_training(MixedCase& run, const Json& json, Comparison& comparison) {
  if (!json.contains("adamw_20_steps")) return;
  const double rate = run.file.json.at("optimizer").at("lr").get<double>();
  const auto losses = json["adamw_20_steps"].at("bf16").get<std::vector<double>>();
  for (size_t step = 0; step < losses.size(); ++step) {
    const double value =
        run.step->run(static_cast<int64_t>(step), {run.batch}, /*rollout=*/1, rate).loss;
    comparison.add(concat("losses[", step, "]"), relative_difference(value, losses[step]),
                   kStepLoss);
  }
}

// Types of what the modules give for activations in bfloat16, of those the table knows on their
// own.
void check_types(const MixedCase& run, const Json& types, const at::Tensor& prediction,
                 Comparison& comparison) {
  const at::Tensor x = at::ones({2, 2}, run.model.parameters.activation_type());
  const at::Tensor narrow = at::linear(x, x);
  const std::map<std::string, at::ScalarType> ours{
      {"Linear", narrow.scalar_type()},
      {"GELU", at::gelu(narrow).scalar_type()},
      {"AutocastLayerNorm", at::layer_norm(for_op(model::OpKind::kNormalisation, narrow), {2})
                                .to(narrow.scalar_type())
                                .scalar_type()},
      {"HardtanhBounding", prediction.scalar_type()},
      {"FractionBounding", prediction.scalar_type()},
      {"ReluBounding", prediction.scalar_type()},
      {"NormalizedReluBounding", prediction.scalar_type()},
      {"SkipConnection", run.batch[0].values.scalar_type()}};
  for (const auto& [module, type] : ours) {
    if (!types.contains(module)) continue;
    const char* name = type == at::kBFloat16 ? "bfloat16" : "float32";
    comparison.require(types[module].get<std::string>() == name, concat(module, " gives ", name));
  }
}

void check_case(const CaseFile& file, const fs::path& models, const std::string& name,
                Comparison& comparison) {
  const Json& json = file.json["cases"].at(name);
  const SafetensorsFile expected = file.tensors();
  MixedCase run(models, Precision::kBf16Mixed);
  const at::Tensor y = run.prediction();
  const double loss = run.add_gradients();
  comparison.require(y.scalar_type() == at::kFloat, "the prediction is not fp32");
  comparison.add("y_pred", max_difference(y, read_tensor(expected, name + "/y_pred")), kOutput);
  comparison.add("loss", relative_difference(loss, expected.doubles(name + "/loss").at(0)), kLoss);
  compare_gradients(run, comparison);
  if (json.contains("output_dtype_under_autocast")) {
    check_types(run, json["output_dtype_under_autocast"], y, comparison);
  }
  if (json.contains("float16_forward_against_float32")) {
    const at::Tensor half = MixedCase(models, Precision::kFp16Mixed).prediction();
    const at::Tensor reference = read_tensor(run.tensors, "y_pred");
    const double spread =
        json["float16_forward_against_float32"].at("y_pred").at("max_abs").get<double>();
    comparison.add("y_pred in fp16", max_difference(half, reference), kHalfFactor * spread);
  }
  check_training(run, json, comparison);
}

// The model case of a name, in a folder beside that of the file.
std::optional<fs::path> model_case(const CaseFile& file, const std::string& name) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(file.json_path.parent_path().parent_path())) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    const fs::path path = folder / (name + ".json");
    if (!fs::exists(path)) continue;
    const CaseFile found(path);
    if (found.json.is_object() && found.json.contains("model")) return path;
  }
  return std::nullopt;
}

}  // namespace

void run_mixed_precision_cases(const CaseFile& file, Report& report) {
  for (const auto& [name, json] : file.json.at("cases").items()) {
    const std::optional<fs::path> model = model_case(file, name);
    if (!model) {
      report.skip("mixed precision", name, "its model case is not there");
      continue;
    }
    report.run("mixed precision", name, [&, id = name](Comparison& comparison) {
      check_case(file, *model, id, comparison);
    });
  }
}

}  // namespace aifs::conformance
