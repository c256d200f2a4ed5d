// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_options.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

namespace {

// The values that names in a list stand for. Throws ConfigError for a name that is not known or
// stands there twice.
template <class E>
std::vector<E> named(const std::vector<std::string>& names, const std::string& path,
                     const char* what) {
  std::vector<E> values;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& table = EnumNames<E>::table;
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const auto& entry) { return names[i] == entry.second; });
    if (found == table.end()) {
      throw ConfigError(concat(path, ".", i), concat("no ", what, " '", names[i], "'"),
                        nearest_names(names[i], enum_names<E>()));
    }
    if (std::find(values.begin(), values.end(), found->first) != values.end()) {
      throw ConfigError(concat(path, ".", i), concat("'", names[i], "' is named twice"));
    }
    values.push_back(found->first);
  }
  return values;
}

void check_all_known(const std::vector<std::string>& wanted, const std::vector<std::string>& known,
                     const std::string& path, const char* fault) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::find(known.begin(), known.end(), wanted[i]) == known.end()) {
      throw ConfigError(concat(path, ".", i), concat("'", wanted[i], "' ", fault),
                        nearest_names(wanted[i], known));
    }
  }
}

bool is_used(const LossOptions& loss, const std::string& scaler) {
  for (const auto& [path, term] : loss.effective_terms()) {
    if (std::find(term.scalers.begin(), term.scalers.end(), scaler) != term.scalers.end())
      return true;
  }
  return false;
}

// The kinds of scalers that need no name of their own, each with a comma behind it.
std::string unnamed_kinds() {
  std::string names;
  for (const auto& kind : ScalerKind::kinds())
    if (!kind.make()->needs_name()) names += concat(kind.name, ", ");
  return names;
}

// Adds what the section holds for the unnamed scaler of a kind. A key that several kinds have is
// read into each of them.
void add_settings(config::Binder& b, const char* name, ScalerKind& kind) {
  config::Binder own;
  kind.bind_in_section(own);
  for (config::Field& field : own.fields()) {
    const auto there = std::find_if(b.fields().begin(), b.fields().end(),
                                    [&](const config::Field& f) { return f.key == field.key; });
    if (there == b.fields().end()) {
      field.doc.text += concat(" (scaler ", name, ")");
      b.fields().push_back(std::move(field));
      continue;
    }
    there->doc.text.back() = ',';
    there->doc.text += concat(" ", name, ")");
    there->read = [first = there->read, second = field.read](const config::Json& json,
                                                             const std::string& path,
                                                             const config::ReadContext& context) {
      first(json, path, context);
      second(json, path, context);
    };
  }
}

}  // namespace

LossOptions::LossOptions() {
  scalers = {"pressure_level", "general_variable", "node_weights", "time_steps"};
  unnamed_scalers.for_each([](const char*, ScalerKind& scaler) { scaler.become_unnamed(); });
}

void ScalesOptions::bind(config::Binder& b) {
  b.number_list(
      "weights", weights, {.min = 0.0},
      {"weight of each scale from coarse to fine, one for each file or num_scales + 1 of them; "
       "empty: the loss is not split into scales"});
  b.text_list("files", files,
              {"smoothers from coarse to fine, sparse matrices of scipy.sparse.save_npz; an empty "
               "name leaves the fields as they are. Instead of num_scales"},
              config::TextKind::kPath);
  b.list("smoothers", smoothers,
         {"smoothers from coarse to fine, one by one; the fields as they are come as the last "
          "scale. Instead of num_scales"});
  b.integer("num_scales", num_scales, {.min = 0, .max = 32},
            {"smoothed scales besides the finest one"});
  b.integer("base_neighbours", base_neighbours, {.min = 1, .max = 4096},
            {"nearest nodes of the finest smoother"});
  b.number("base_sigma", base_sigma, {.min = 1e-9}, {"width of the finest smoother", "rad"});
  b.number("scale_factor", scale_factor, {.min = 1.0},
           {"by how much neighbours and width grow from scale to scale"});
  b.boolean(
      "of_aggregates", of_aggregates,
      {"with time_aggregation: scales of the aggregates, instead of aggregates of each scale"});
}

void ScalesOptions::validate(const std::string& path) const {
  if (!files.empty() && num_scales > 0) {
    throw ConfigError(path + ".files", "and num_scales are two ways to say the same",
                      "leave one of them out");
  }
  if (!smoothers.empty() && (num_scales > 0 || !files.empty())) {
    throw ConfigError(path + ".smoothers", "come instead of files and num_scales",
                      "leave the others out");
  }
  const int64_t made = smoothers.empty() ? num_scales : std::ssize(smoothers);
  const size_t wanted = !files.empty()                 ? files.size()
                        : weights.empty() && made == 0 ? 0
                                                       : static_cast<size_t>(made) + 1;
  if (weights.size() != wanted) {
    throw ConfigError(path + ".weights", concat("has ", weights.size(), " values, ", files.size(),
                                                " files and ", made, " smoothers need ", wanted));
  }
}

void LossTermOptions::bind(config::Binder& b) {
  kind.bind(b, "kind", {"error or score, of normalised values"});
  b.number("weight", weight, {}, {"factor of the loss"});
  b.boolean("ignore_nans", ignore_nans, {"count NaN in prediction or target as no error"});
  b.text_list("variables", variables, {"predicted variables it looks at; empty: all"});
  b.text_list("target_variables", target_variables,
              {"what they are compared with, one each; empty: themselves"});
  b.text_list("scalers", scalers,
              {concat("weights multiplied onto the errors, in this order: ", unnamed_kinds(),
                      "or a name among loss.named_scalers")});
  b.text_list("time_aggregation", time_aggregation,
              {"compare mean, min, max or diff of the output times instead of each; empty: each"});
  b.section("scales", scales, {"a loss of each scale of the fields"});
}

void LossTermOptions::validate(const std::string& path) const {
  time_aggregates(path + ".time_aggregation");
  if (scales.of_aggregates && (time_aggregation.empty() || scales.weights.empty()))
    throw ConfigError(path + ".scales.of_aggregates", "needs time_aggregation and scales");
  if (!variables.empty() && !target_variables.empty() &&
      target_variables.size() != variables.size()) {
    throw ConfigError(
        path + ".target_variables",
        concat("has ", target_variables.size(), " names for ", variables.size(), " in variables"));
  }
  if (kind->is_of_waves() && ignore_nans) {
    throw ConfigError(path + ".ignore_nans", "a transform of a field with NaN is not defined");
  }
  kind->validate(path);
}

std::vector<TimeAggregate> LossTermOptions::time_aggregates(const std::string& path) const {
  return named<TimeAggregate>(time_aggregation, path, "time aggregate");
}

void LossOptions::bind(config::Binder& b) {
  LossTermOptions::bind(b);
  b.list("terms", terms,
         {"several losses, added with their weights; they take the scalers above unless they name "
          "their own. Empty: the one loss above"});
  unnamed_scalers.for_each(
      [&b](const char* name, ScalerKind& scaler) { add_settings(b, name, scaler); });
  b.map("named_scalers", named_scalers,
        {"further scalers, by the names that lists of scalers use for them: several of one kind, "
         "or with a normalisation of their own"});
}

void LossOptions::validate(const std::string& path) const {
  unnamed_scalers.for_each([&](const char*, const ScalerKind& unnamed) {
    if (!unnamed.needs_name()) unnamed.validate(path);
  });
  if (!terms.empty()) {
    LossTermOptions own = *this, plain = LossOptions();
    config::refuse_unused(config::fields_of(own), config::fields_of(plain), {"scalers"}, path,
                          "a sum of terms, which have their own");
  }
  const auto all = effective_terms();
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string own = terms.empty() ? path : all[i].first;
    all[i].second.validate(own);
    check_scalers(all[i].second, own);
  }
}

std::string LossOptions::scaler_path(const std::string& name) const {
  for (const auto& [known, scaler] : named_scalers)
    if (known == name) return "loss.named_scalers." + name;
  return "loss";
}

ScalerOptions LossOptions::scaler(const std::string& name, const std::string& path) const {
  std::vector<std::string> names;
  unnamed_scalers.for_each([&](const char* known, const ScalerKind& unnamed) {
    if (!unnamed.needs_name()) names.emplace_back(known);
  });
  const bool is_kind = std::find(names.begin(), names.end(), name) != names.end();
  for (const auto& [known, scaler] : named_scalers) {
    if (known == name) return scaler;
    names.push_back(known);
  }
  if (is_kind) {
    ScalerOptions unnamed{unnamed_scalers};
    unnamed.kind.choose(name);
    return unnamed;
  }
  throw ConfigError(path, concat("no scaler '", name, "'"), nearest_names(name, names));
}

void LossOptions::check_scalers(const LossTermOptions& term, const std::string& path) const {
  const bool waves = term.kind->is_of_waves();
  const GridUse wanted = waves ? GridUse::kWaves : GridUse::kNodes;
  bool has_grid = term.scalers.empty();
  for (size_t i = 0; i < term.scalers.size(); ++i) {
    const std::string& name = term.scalers[i];
    const std::string own_path = concat(path, ".scalers.", i);
    const ScalerOptions options = scaler(name, own_path);
    const GridUse use = options.kind->grid_use();
    if (std::count(term.scalers.begin(), term.scalers.begin() + static_cast<ptrdiff_t>(i), name)) {
      throw ConfigError(own_path, concat("'", name, "' is named twice"));
    }
    const bool is_named = scaler_path(name) != "loss";
    if (!is_named && use != GridUse::kNone && use != wanted) {
      throw ConfigError(path + ".scalers", concat("'", name, "' is not for ", term.kind.name()),
                        waves ? "its errors are of waves: use \"spectral\""
                              : "its errors are of nodes: use \"node_weights\"");
    }
    const std::vector<Axis> axes = options.kind->axes();
    const bool on_grid = std::find(axes.begin(), axes.end(), kGrid) != axes.end();
    has_grid = has_grid || (is_named ? on_grid : use == wanted);
  }
  if (!has_grid) {
    throw ConfigError(
        path + ".scalers",
        concat("a loss with scalers needs ", waves ? "spectral" : "node_weights", " among them"),
        "without it the loss would grow with the size of the grid");
  }
}

std::vector<std::pair<std::string, LossTermOptions>> LossOptions::effective_terms() const {
  if (terms.empty()) return {{"loss", *this}};
  std::vector<std::pair<std::string, LossTermOptions>> all;
  for (size_t i = 0; i < terms.size(); ++i) {
    all.emplace_back(concat("loss.terms.", i), terms[i]);
    if (terms[i].scalers.empty()) all.back().second.scalers = scalers;
  }
  return all;
}

void LossOptions::check(int64_t members, int64_t times_out) const {
  unnamed_scalers.for_each([&](const char* name, const ScalerKind& unnamed) {
    const char* key = unnamed.key_to_use();
    if (key && !is_used(*this, name)) {
      throw ConfigError(concat("loss.", key),
                        concat("is read by the scaler '", name, "', which no loss has"),
                        "add it to loss.scalers");
    }
    unnamed.check_times(times_out, "loss");
  });
  for (const auto& [name, scaler] : named_scalers) {
    scaler.kind->check_times(times_out, scaler_path(name));
    if (!is_used(*this, name)) {
      throw ConfigError("loss.named_scalers." + name, "is used by no loss",
                        "add it to loss.scalers, or leave it out");
    }
  }
  for (const auto& [path, term] : effective_terms()) {
    if (term.kind->compares_members() && members < 2) {
      throw ConfigError(path + ".kind",
                        concat("'", term.kind.name(), "' compares the members of an ensemble, ",
                               "the network predicts ", members),
                        "choose a loss of single forecasts, or a network with members");
    }
    if (!term.time_aggregation.empty() && times_out < 2) {
      throw ConfigError(path + ".time_aggregation",
                        "needs several output times, data.multistep_output is 1");
    }
  }
}

void LossOptions::check_names(const data::VariableTable& table,
                              const std::vector<std::string>& targets) const {
  const std::vector<std::string> outputs = table.output_names();
  for (const auto& [path, term] : effective_terms()) {
    check_all_known(term.variables, outputs, path + ".variables", "is not predicted");
    check_all_known(term.target_variables, targets.empty() ? outputs : targets,
                    path + ".target_variables", "is nothing to compare with");
    if (!term.target_variables.empty() && term.variables.empty() &&
        term.target_variables.size() != outputs.size()) {
      throw ConfigError(
          path + ".target_variables",
          concat("has ", term.target_variables.size(), " names for ", outputs.size(), " outputs"));
    }
    for (const std::string& name : term.scalers)
      scaler(name, path + ".scalers").kind->check_names(outputs, scaler_path(name));
  }
}

}  // namespace aifs::train
