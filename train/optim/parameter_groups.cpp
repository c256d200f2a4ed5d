// SPDX-License-Identifier: Apache-2.0
#include "train/optim/parameter_groups.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

namespace {

bool fits_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(name, pattern); });
}

void check_patterns(const model::ParameterSet& parameters, const std::vector<std::string>& patterns,
                    const std::string& path) {
  std::vector<std::string> names;
  for (const model::Parameter& parameter : parameters.entries()) {
    if (parameter.is_optimised()) names.push_back(parameter.name);
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    const bool used = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return matches_pattern(name, patterns[i]);
    });
    if (!used) {
      throw ConfigError(concat(path, ".", i),
                        concat("no trainable parameter fits '", patterns[i], "'"),
                        nearest_names(patterns[i], names));
    }
  }
}

}  // namespace

bool matches_pattern(const std::string& name, const std::string& pattern) {
  if (pattern.find('*') == std::string::npos) {
    return name == pattern || name.starts_with(pattern + ".");
  }
  // Greedy matching: go back to the last star where the rest does not fit.
  size_t n = 0, p = 0, star = std::string::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

void ParameterGroupOptions::bind(config::Binder& b) {
  b.text_list("parameters", parameters,
              {"names of parameters, of parts of the network, or with * for any text"});
  b.number("lr_factor", lr_factor, {.min = 0.0}, {"factor of the learning rate"});
  b.number("weight_decay", weight_decay, {}, {"decay; negative: that of the optimiser"});
}

void ParameterGroupOptions::validate(const std::string& path) const {
  if (parameters.empty()) throw ConfigError(path + ".parameters", "names no parameter");
}

std::vector<ParameterRange> parameter_ranges(const model::ParameterSet& parameters,
                                             const std::vector<ParameterGroupOptions>& groups,
                                             const std::vector<std::string>& frozen,
                                             double weight_decay) {
  check_patterns(parameters, frozen, "optimizer.freeze");
  for (size_t i = 0; i < groups.size(); ++i)
    check_patterns(parameters, groups[i].parameters, concat("optimizer.groups.", i, ".parameters"));
  std::vector<const model::Parameter*> order;
  for (const model::Parameter& parameter : parameters.entries()) {
    if (parameter.is_optimised()) order.push_back(&parameter);
  }
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->offset < b->offset; });
  std::vector<ParameterRange> ranges;
  bool after_hole = true;
  for (size_t i = 0; i < order.size(); ++i) {
    const model::Parameter& parameter = *order[i];
    if (fits_any(parameter.name, frozen)) {
      after_hole = true;
      continue;
    }
    ParameterRange range{
        .begin = parameter.offset,
        .end = i + 1 < order.size() ? order[i + 1]->offset : parameters.flat_size(),
        .weight_decay = weight_decay};
    for (const ParameterGroupOptions& group : groups) {
      if (!fits_any(parameter.name, group.parameters)) continue;
      range.lr_factor = group.lr_factor;
      if (group.weight_decay >= 0.0) range.weight_decay = group.weight_decay;
      break;
    }
    const bool alike = !after_hole && ranges.back().lr_factor == range.lr_factor &&
                       ranges.back().weight_decay == range.weight_decay;
    if (alike) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
    after_hole = false;
  }
  if (ranges.empty()) throw ConfigError("optimizer.freeze", "nothing is left to train");
  return ranges;
}

void freeze(const model::ParameterSet& parameters, const std::vector<std::string>& patterns) {
  for (const model::Parameter& parameter : parameters.entries()) {
    if (parameter.is_optimised() && fits_any(parameter.name, patterns)) {
      at::Tensor(parameter.tensor).set_requires_grad(false);
    }
  }
}

}  // namespace aifs::train
