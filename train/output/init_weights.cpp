// SPDX-License-Identifier: Apache-2.0
#include "train/output/init_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "core/check.h"
#include "core/join.h"
#include "train/optim/adapters.h"
#include "train/optim/parameter_groups.h"

namespace aifs::train {

namespace {

// Says which axis of a tensor has a place for each variable.
enum class VariablePlace { kNone, kInputColumns, kOutputRows };

bool is_part_of(const std::string& name, const char* module, const char* part) {
  return name.starts_with(module) && name.find(part) != std::string::npos;
}

// True for what the first linear of an embedding is called: it is one, or the first of an MLP,
// whose gated layers have two.
bool is_first_linear(const std::string& name) {
  const std::string leaf = name.substr(name.find(".emb_nodes_"));
  return leaf.find(".mlp.") == std::string::npos || leaf.find(".mlp.0.") != std::string::npos;
}

// Returns the prefix of the last linear of an extractor: the largest number that has a matrix.
std::string last_linear(const model::ParameterSet& parameters, const std::string& extractor) {
  int64_t last = -1;
  std::string prefix;
  for (const model::Parameter& parameter : parameters.entries()) {
    const std::string& name = parameter.name;
    if (!name.starts_with(extractor) || parameter.tensor.dim() != 2) continue;
    const std::string linear = name.substr(0, name.rfind('.'));
    const int64_t number = std::atoll(linear.c_str() + linear.rfind('.') + 1);
    if (number > last) {
      last = number;
      prefix = linear + ".";
    }
  }
  return prefix;
}

VariablePlace variable_place(const model::ParameterSet& parameters,
                             const model::Parameter& parameter) {
  const std::string& name = parameter.name;
  const bool embeds = is_part_of(name, "encoder.", ".emb_nodes_src.") ||
                      is_part_of(name, "decoder.", ".emb_nodes_dst.");
  if (embeds && parameter.tensor.dim() == 2 && is_first_linear(name))
    return VariablePlace::kInputColumns;
  constexpr const char* kExtractor = ".node_data_extractor.";
  if (!is_part_of(name, "decoder.", kExtractor)) return VariablePlace::kNone;
  const std::string extractor =
      name.substr(0, name.find(kExtractor) + std::string(kExtractor).size());
  const std::string last = last_linear(parameters, extractor);
  return !last.empty() && name.starts_with(last) ? VariablePlace::kOutputRows
                                                 : VariablePlace::kNone;
}

// True if a buffer is made of the graph's coordinates (NodeAttributes) or of statistics (Bounding),
// by the names that Anemoi gives them.
bool follows_from_data(const model::Parameter& parameter) {
  const std::string& name = parameter.name;
  const std::string leaf = name.substr(name.rfind('.') + 1);  // npos + 1 is 0
  return !parameter.is_optimised() && (leaf.starts_with("latlons_") || leaf == "norm_min_val");
}

bool same_values(const at::Tensor& stored, const model::Parameter& parameter) {
  const at::Tensor own = parameter.tensor.detach().cpu().to(at::kDouble);
  return at::allclose(own_slice(parameter, stored).to(at::kDouble), own, 1e-6, 1e-6);
}

std::string other_shape(const SafetensorsEntry& entry, const model::Parameter& parameter) {
  return concat("has shape ", at::IntArrayRef(entry.shape), " in the checkpoint and ",
                at::IntArrayRef(whole_sizes(parameter)), " in this model");
}

// Takes the places of an axis that both have from `stored`. What is new is 0 or as it is in `own`.
// Further places, which belong to no variable, follow and are the same in both.
at::Tensor matched(const at::Tensor& stored, const at::Tensor& own, int64_t dim,
                   const VariableAxis& axis, bool new_is_zero) {
  at::Tensor result = new_is_zero ? at::zeros_like(own) : own.clone();
  const std::vector<int64_t> places = axis.places();
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] >= 0)
      result.select(dim, static_cast<int64_t>(i)).copy_(stored.select(dim, places[i]));
  }
  const int64_t rest = own.size(dim) - axis.size_now();
  if (rest > 0)
    result.narrow(dim, axis.size_now(), rest).copy_(stored.narrow(dim, axis.size_before(), rest));
  return result;
}

// True if the shapes differ along an axis of variables at most, and there as the variables do.
bool fits_by_variable(const std::vector<int64_t>& stored, const std::vector<int64_t>& own,
                      int64_t dim, const VariableAxis& axis) {
  const auto d = static_cast<size_t>(dim);
  if (stored.size() != own.size() || own.size() <= d) return false;
  for (size_t i = 0; i < own.size(); ++i)
    if (i != d && stored[i] != own[i]) return false;
  const int64_t rest = own[d] - axis.size_now();
  return rest >= 0 && stored[d] - axis.size_before() == rest;
}

// Finds what each tensor of a run gets, then copies.
class WeightTaker {
 public:
  WeightTaker(const SafetensorsFile& file, model::ParameterSet& parameters,
              const InitOptionsOfWeights& options)
      : file_(file), parameters_(parameters), options_(options) {}

  InitReport take() {
    for (const model::Parameter& parameter : parameters_.entries())
      look_at(parameter);
    for (const auto& [name, entry] : file_.entries()) {
      if (parameters_.contains(name)) continue;
      if (is_adapter(name)) {
        note(name, InitUse::kLeftOut, "is in the weight that it belongs to");
      } else {
        skip(name, InitUse::kLeftOut, "is not in this model");
      }
    }
    refuse_faults();
    for (const auto& copy : copies_)
      copy();
    return report_;
  }

 private:
  void note(const std::string& name, InitUse use, const std::string& text = "") {
    report_.tensors.push_back({name, use, text});
  }

  // What does not fit must be allowed.
  void skip(const std::string& name, InitUse use, const std::string& why) {
    const auto& patterns = options_.may_skip;
    const bool allowed =
        std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return matches_pattern(name, pattern); });
    if (allowed) return note(name, use, why);
    faults_.push_back(concat("'", name, "' ", why));
  }

  void look_at(const model::Parameter& parameter) {
    const std::string& name = parameter.name;
    if (is_adapter(name)) return note(name, InitUse::kNew, "is an adapter");
    if (!file_.contains(name)) return skip(name, InitUse::kNew, "is not in the checkpoint");
    const SafetensorsEntry& entry = file_.at(name);
    if (options_.by_name && match(parameter, entry)) return;
    if (entry.shape != whole_sizes(parameter))
      return skip(name, InitUse::kNew, other_shape(entry, parameter));
    const at::Tensor stored = stored_tensor(entry);
    if (follows_from_data(parameter)) {
      const bool same = same_values(stored, parameter);
      return note(name, InitUse::kOwn, same ? "" : "differs and follows from data and graph");
    }
    copies_.emplace_back(
        [&parameter, stored] { parameter.tensor.detach().copy_(own_slice(parameter, stored)); });
    note(name, InitUse::kTaken);
  }

  // Takes a tensor by the names of variables. Returns false if it has none, or they are the same.
  bool match(const model::Parameter& parameter, const SafetensorsEntry& entry) {
    const VariablePlace place = variable_place(parameters_, parameter);
    if (place == VariablePlace::kNone) return false;
    const bool inputs = place == VariablePlace::kInputColumns;
    const VariableAxis& axis = inputs ? options_.by_name->inputs : options_.by_name->outputs;
    const int64_t dim = inputs ? 1 : 0;
    if (axis.is_same() || !fits_by_variable(entry.shape, whole_sizes(parameter), dim, axis))
      return false;
    copies_.emplace_back([&parameter, &axis, stored = stored_tensor(entry), dim, inputs] {
      if (parameter.tensor.numel() == 0) return;  // on another stage
      const at::Tensor own = parameter.tensor.detach().cpu();
      parameter.tensor.detach().copy_(matched(stored.to(own.dtype()), own, dim, axis, inputs));
    });
    note(parameter.name, InitUse::kByVariable, change_of(axis, inputs ? "input" : "output"));
    return true;
  }

  static std::string change_of(const VariableAxis& axis, const char* what) {
    std::vector<std::string> added, removed;
    const auto add_missing = [](const auto& from, const auto& in, auto& out) {
      for (const std::string& name : from)
        if (std::count(in.begin(), in.end(), name) == 0) out.push_back(name);
    };
    add_missing(axis.now, axis.before, added);
    add_missing(axis.before, axis.now, removed);
    return concat(what, "s by name", added.empty() ? "" : ", new: ", join(added),
                  removed.empty() ? "" : ", left out: ", join(removed));
  }

  void refuse_faults() const {
    if (faults_.empty()) {
      const bool used = !copies_.empty();
      if (used) return;
      throw ConfigError("init.from", concat("nothing of '", file_.path().string(), "' was used"));
    }
    std::string text;
    for (const std::string& fault : faults_)
      text += "\n  " + fault;
    throw ConfigError("init.may_skip",
                      concat("'", file_.path().string(), "' does not fit this model, ",
                             faults_.size(), " tensors differ:", text),
                      concat("allow what may keep its first values by name, with * for any text",
                             options_.by_name ? ""
                                              : "; columns and rows of other variables are taken "
                                                "by name with init.variables_by_name"));
  }

  const SafetensorsFile& file_;
  model::ParameterSet& parameters_;
  const InitOptionsOfWeights& options_;
  InitReport report_;
  std::vector<std::string> faults_;
  std::vector<std::function<void()>> copies_;
};

// "processor", "encoder.data": the part of the network that a tensor belongs to.
std::string part_of(const std::string& name) {
  return name.substr(0, name.find('.'));
}

}  // namespace

std::vector<int64_t> VariableAxis::places() const {
  std::vector<int64_t> places;
  for (int64_t time = 0; time < times_now; ++time) {
    const int64_t time_before = last_is_same ? time - times_now + times_before : time;
    const bool is_there = time_before >= 0 && time_before < times_before;
    for (const std::string& name : now) {
      const auto found = std::find(before.begin(), before.end(), name);
      const bool known = is_there && found != before.end();
      places.push_back(known ? time_before * static_cast<int64_t>(before.size()) +
                                   (found - before.begin())
                             : -1);
    }
  }
  return places;
}

int64_t InitReport::count(InitUse use) const {
  return std::count_if(tensors.begin(), tensors.end(),
                       [use](const InitTensor& tensor) { return tensor.use == use; });
}

std::string InitReport::table() const {
  std::vector<std::string> parts;
  std::map<std::string, std::map<InitUse, int64_t>> counts;
  for (const InitTensor& tensor : tensors) {
    const std::string part = part_of(tensor.name);
    if (counts.find(part) == counts.end()) parts.push_back(part);
    ++counts[part][tensor.use];
  }
  char line[160];
  std::snprintf(line, sizeof line, "%-28s %7s %12s %7s %8s %7s", "tensors of", "taken",
                "by variable", "new", "not used", "own");
  std::string text = line;
  for (const std::string& part : parts) {
    std::map<InitUse, int64_t>& c = counts[part];
    std::snprintf(
        line, sizeof line, "\n%-28s %7lld %12lld %7lld %8lld %7lld", part.c_str(),
        static_cast<long long>(c[InitUse::kTaken]), static_cast<long long>(c[InitUse::kByVariable]),
        static_cast<long long>(c[InitUse::kNew]), static_cast<long long>(c[InitUse::kLeftOut]),
        static_cast<long long>(c[InitUse::kOwn]));
    text += line;
  }
  return text;
}

InitReport init_parameters(const CheckpointInfo& checkpoint, model::ParameterSet& parameters,
                           const InitOptionsOfWeights& options) {
  const SafetensorsFile file(weights_file(checkpoint));
  return WeightTaker(file, parameters, options).take();
}

}  // namespace aifs::train
