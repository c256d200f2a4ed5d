// SPDX-License-Identifier: Apache-2.0
// Optimisers and weight averages on given gradients. Their options are written as a sentence in the
// reference ("AdamW lr 0.01 betas .9 .95 eps 1e-8 weight decay .01"), which is read word by word.
#include <ATen/ATen.h>

#include "conformance/cases.h"
#include "conformance/tensors.h"
#include "train/optim/optimizer.h"
#include "train/optim/weight_average.h"

namespace aifs::conformance {

namespace {

// Largest difference over the largest element.
constexpr double kSingleState = 1e-6, kDoubleState = 1e-10;

// The numbers that follow `words` in a sentence, as many as are asked for; `fallback` where the
// words do not occur.
std::vector<double> numbers_after(const std::string& sentence, const std::string& words,
                                  std::vector<double> fallback) {
  size_t at = sentence.find(words);
  if (at == std::string::npos) return fallback;
  at += words.size();
  for (double& number : fallback) {
    size_t used = 0;
    number = std::stod(sentence.substr(at), &used);
    at += used;
  }
  return fallback;
}

double number_after(const std::string& sentence, const std::string& words, double fallback) {
  return numbers_after(sentence, words, {fallback})[0];
}

struct Settings {
  train::AdamWOptions adamw;
  double lr = 0.0;
  train::ClipKind clip = train::ClipKind::kNone;
  double clip_limit = 0.0;
};

// Returns what a sentence says, on top of `settings`.
Settings read_settings(const std::string& sentence, Settings settings) {
  train::AdamWOptions& o = settings.adamw;
  const std::vector<double> betas = numbers_after(sentence, "betas", {o.beta1, o.beta2});
  o.beta1 = betas[0];
  o.beta2 = betas[1];
  if (sentence.starts_with("AdEMAMix")) {
    o.kind = train::OptimizerKind::kAdemamix;
    o.beta3 = numbers_after(sentence, "betas", {o.beta1, o.beta2, o.beta3})[2];
    o.alpha = number_after(sentence, "alpha", o.alpha);
    o.alpha_warmup = o.beta3_warmup =
        static_cast<int64_t>(number_after(sentence, "both warm-ups", 0.0));
  }
  o.eps = number_after(sentence, "eps", o.eps);
  o.weight_decay = number_after(sentence, "weight decay", o.weight_decay);
  settings.lr = number_after(sentence, "lr", settings.lr);
  const double value_limit = number_after(sentence, "clamped to +-", 0.0);
  const double norm_limit = number_after(sentence, "norm clipped to", 0.0);
  if (value_limit > 0.0) {
    settings.clip = train::ClipKind::kValue;
    settings.clip_limit = value_limit;
  }
  if (norm_limit > 0.0) {
    settings.clip = train::ClipKind::kNorm;
    settings.clip_limit = norm_limit;
  }
  return settings;
}

// The settings that other cases call "same": those of the first case that names AdamW.
Settings common_settings(const Json& cases) {
  for (const auto& [name, json] : cases.items()) {
    const auto sentence = json.at("what").get<std::string>();
    if (sentence.starts_with("AdamW ")) return read_settings(sentence, {});
  }
  throw NotSupported("no case says which options AdamW has");
}

// Parameters after each step, stacked.
at::Tensor run_adamw(const SafetensorsFile& tensors, const Settings& settings,
                     const std::vector<double>& lr_per_step, at::ScalarType dtype) {
  const at::Tensor start = read_tensor(tensors, "start", dtype);
  const at::Tensor gradients = read_tensor(tensors, "gradients", dtype);
  model::ParameterSet parameters(dtype, /*seed=*/1);
  parameters.add("p", start.sizes(), model::Init::zeros());
  parameters.flatten(at::kCPU);
  parameters.assign("p", start);
  const model::Parameter& p = parameters.at("p");
  train::AdamW optimizer(parameters, settings.adamw);
  std::vector<at::Tensor> after;
  for (int64_t step = 0; step < gradients.size(0); ++step) {
    parameters.gradient(p).copy_(gradients[step]);
    const double lr = lr_per_step.empty() ? settings.lr : lr_per_step.at(static_cast<size_t>(step));
    train::clipped_step(optimizer, lr, {.whole = {parameters.flat_gradients()}}, settings.clip,
                        settings.clip_limit);
    after.push_back(p.tensor.detach().clone());
  }
  return at::stack(after);
}

// `twin`: the same of the reference in fp64, if it is there.
void compare(const std::string& what, const at::Tensor& ours, const at::Tensor& expected,
             Comparison& comparison, const at::Tensor& twin = {}) {
  const double limit = expected.scalar_type() == at::kDouble ? kDoubleState : kSingleState;
  const double scale = max_abs(expected);
  const double own_error = twin.defined() ? max_difference(expected, twin) / scale : 0.0;
  comparison.add(what, max_difference(ours, expected) / scale, limit, own_error);
}

void check_optimizer(const CaseFile& file, const SafetensorsFile& tensors, const std::string& name,
                     Comparison& comparison) {
  const Json& json = file.json["cases"][name];
  const auto sentence = json.at("what").get<std::string>();
  Settings settings = read_settings(sentence, common_settings(file.json["cases"]));
  const Json rates = json.value("lr_per_step", Json());
  if (!rates.is_null() && settings.clip == train::ClipKind::kNone) {
    // With rates of its own a case is a whole step of Anemoi's trainer, which clamps to +-32.
    settings.clip = train::ClipKind::kValue;
    settings.clip_limit = 32.0;
  }
  const auto lr_per_step =
      rates.is_null() ? std::vector<double>() : rates.get<std::vector<double>>();
  const std::string result = name + "/after_each_step";
  const at::Tensor twin =
      tensors.contains(result + "_f64") ? read_tensor(tensors, result + "_f64") : at::Tensor();
  compare("after_each_step", run_adamw(tensors, settings, lr_per_step, at::kFloat),
          read_tensor(tensors, result), comparison, twin);
  if (!twin.defined()) return;
  compare("after_each_step_f64", run_adamw(tensors, settings, lr_per_step, at::kDouble), twin,
          comparison);
}

void check_average(const CaseFile& file, const SafetensorsFile& tensors, const std::string& name,
                   Comparison& comparison) {
  const Json& json = file.json["cases"][name];
  const auto sentence = json.at("what").get<std::string>();
  if (json.value("first_update", "copies the weights") != std::string("copies the weights")) {
    throw NotSupported("an average whose first update does not copy");
  }
  const bool is_mean = sentence.find("running mean") != std::string::npos;
  if (!is_mean && sentence.find("decay") == std::string::npos) throw NotSupported(sentence);
  train::WeightAverage average(
      is_mean ? train::AverageKind::kMean : train::AverageKind::kExponential,
      number_after(sentence, "decay", 0.0));
  const at::Tensor weights = read_tensor(tensors, json.at("input").get<std::string>());
  std::vector<at::Tensor> after;
  for (int64_t step = 0; step < weights.size(0); ++step) {
    average.update(weights[step]);
    after.push_back(average.values().clone());
  }
  compare("average_after_each_update", at::stack(after),
          read_tensor(tensors, name + "/average_after_each_update"), comparison);
}

}  // namespace

void run_optimizer_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  for (const auto& [name, json] : file.json.at("cases").items()) {
    const bool is_average = json.contains("input");
    report.run(is_average ? "weight average" : "optimizer", name,
               [&, name_ = name](Comparison& comparison) {
                 (is_average ? check_average : check_optimizer)(file, tensors, name_, comparison);
               });
  }
}

}  // namespace aifs::conformance
