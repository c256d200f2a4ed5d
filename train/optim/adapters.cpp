// SPDX-License-Identifier: Apache-2.0
#include "train/optim/adapters.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "train/optim/parameter_groups.h"

namespace aifs::train {

namespace {

constexpr const char* kWeight = ".weight";
constexpr const char* kA = ".lora_a";
constexpr const char* kB = ".lora_b";
constexpr const char* kBase = ".lora_base";

// The name of a weight or of a tensor of its adapter, without what makes the difference.
std::string stem(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}

bool is_matrix(const model::Parameter& parameter) {
  return parameter.is_optimised() && !parameter.unused && parameter.tensor.dim() == 2 &&
         parameter.name.ends_with(kWeight);
}

// The first pattern that fits a name, or none.
const std::string* fitting(const std::string& name, const std::vector<std::string>& patterns) {
  const auto found =
      std::find_if(patterns.begin(), patterns.end(),
                   [&](const std::string& pattern) { return matches_pattern(name, pattern); });
  return found == patterns.end() ? nullptr : &*found;
}

}  // namespace

void LoraOptions::bind(config::Binder& b) {
  b.integer("rank", rank, {.min = 0, .max = 4096},
            {"rows of A and columns of B in W + alpha / rank B A; 0: no adapters"});
  b.number("alpha", alpha, {.min = 1e-9}, {"strength of what is added"});
  b.text_list("parameters", parameters,
              {"weights of linears that get an adapter: names, parts, or with * for any text"});
  b.text_list("train_whole", train_whole,
              {"parameters that are trained besides, as they are, such as the embedding of new "
               "variables; all others stay as they are"});
}

void LoraOptions::validate(const std::string& path) const {
  if (is_on() && parameters.empty()) {
    throw ConfigError(path + ".parameters", "names no weights, and rank asks for adapters",
                      "for example [\"processor\"]");
  }
  if (!is_on() && !(parameters.empty() && train_whole.empty())) {
    throw ConfigError(path + ".rank", "is 0, and there are parameters for adapters",
                      "a rank of 8 is usual");
  }
}

bool is_adapter(const std::string& name) {
  constexpr std::array<const char*, 3> kLeaves{kA, kB, kBase};
  return std::any_of(kLeaves.begin(), kLeaves.end(),
                     [&](const char* leaf) { return name.ends_with(leaf); });
}

std::string adapted_weight(const std::string& name) {
  return stem(name) + kWeight;
}

void add_adapters(model::ParameterSet& parameters, const LoraOptions& options) {
  if (!options.is_on()) return;
  std::vector<model::Parameter> chosen;
  std::vector<std::string> names;
  for (const model::Parameter& parameter : parameters.entries()) {
    if (!is_matrix(parameter)) continue;
    names.push_back(parameter.name);
    if (fitting(parameter.name, options.parameters)) chosen.push_back(parameter);
  }
  for (size_t i = 0; i < options.parameters.size(); ++i) {
    const std::string& pattern = options.parameters[i];
    const bool used = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return matches_pattern(name, pattern);
    });
    if (!used) {
      throw ConfigError(concat("optimizer.lora.parameters.", i),
                        concat("no weight of a linear fits '", pattern, "'"),
                        nearest_names(pattern, names));
    }
  }
  for (const model::Parameter& weight : chosen) {
    const int64_t out = weight.tensor.size(0), in = weight.tensor.size(1);
    const double bound = 1.0 / std::sqrt(static_cast<double>(in));
    const std::string name = stem(weight.name);
    parameters.add(name + kA, {options.rank, in}, model::Init::uniform(bound));
    parameters.add(name + kB, {out, options.rank}, model::Init::zeros());
    parameters.add_buffer(name + kBase, weight.tensor.detach());
  }
}

std::vector<std::string> not_updated(const model::ParameterSet& parameters,
                                     const LoraOptions& options) {
  std::vector<std::string> left;
  std::vector<bool> used(options.train_whole.size(), false);
  for (const model::Parameter& parameter : parameters.entries()) {
    const std::string& name = parameter.name;
    if (!parameter.is_optimised() || is_adapter(name)) continue;
    const std::string* pattern = fitting(name, options.train_whole);
    if (!pattern) {
      left.push_back(name);
      continue;
    }
    const auto i = static_cast<size_t>(pattern - options.train_whole.data());
    used[i] = true;
    if (parameters.contains(stem(name) + kA) && name.ends_with(kWeight)) {
      throw ConfigError(concat("optimizer.lora.train_whole.", i),
                        concat("fits '", name, "', which has an adapter"),
                        "leave it out here, or in optimizer.lora.parameters");
    }
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      throw ConfigError(concat("optimizer.lora.train_whole.", i),
                        concat("no trainable parameter fits '", options.train_whole[i], "'"),
                        nearest_names(options.train_whole[i], left));
  }
  return left;
}

Adapters::Adapters(const model::ParameterSet& parameters, const LoraOptions& options)
    : parameters_(parameters), scale_(options.alpha / static_cast<double>(options.rank)) {
  for (const model::Parameter& a : parameters.entries()) {
    if (!a.name.ends_with(kA)) continue;
    const std::string name = stem(a.name);
    adapters_.push_back({.weight = parameters.at(name + kWeight),
                         .a = a,
                         .b = parameters.at(name + kB),
                         .base = parameters.at(name + kBase).tensor});
    at::Tensor(a.tensor).set_requires_grad(false);
    at::Tensor(adapters_.back().b.tensor).set_requires_grad(false);
  }
}

void Adapters::start() {
  for (const Adapter& adapter : adapters_)
    adapter.base.copy_(adapter.weight.tensor.detach());
}

void Adapters::share(parallel::Communicator& group) {
  for (const Adapter& adapter : adapters_)
    group.broadcast(adapter.base, 0);
}

void Adapters::pull_gradients() {
  for (const Adapter& adapter : adapters_) {
    const at::Tensor sum = parameters_.gradient(adapter.weight);
    const at::Tensor a = adapter.a.tensor.detach(), b = adapter.b.tensor.detach();
    parameters_.gradient(adapter.a).copy_(at::matmul(b.t(), sum).mul_(scale_));
    parameters_.gradient(adapter.b).copy_(at::matmul(sum, a.t()).mul_(scale_));
    sum.zero_();
  }
}

void Adapters::merge() {
  for (const Adapter& adapter : adapters_) {
    const at::Tensor a = adapter.a.tensor.detach(), b = adapter.b.tensor.detach();
    adapter.weight.tensor.detach().copy_(at::matmul(b, a).mul_(scale_).add_(adapter.base));
  }
}

std::vector<std::string> Adapters::weights() const {
  std::vector<std::string> names;
  for (const Adapter& adapter : adapters_)
    names.push_back(adapter.weight.name);
  return names;
}

}  // namespace aifs::train
