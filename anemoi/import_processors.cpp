// SPDX-License-Identifier: Apache-2.0
// Processors of one dataset: how values are filled, mapped and normalised.
#include <algorithm>
#include <map>

#include "anemoi/part_sections.h"
#include "anemoi/sections.h"
#include "anemoi/yaml_scalar.h"
#include "core/check.h"

namespace aifs::anemoi {

namespace {

// Checks what "default" may be without naming every variable of the dataset.
void expect_no_default(const Place& config) {
  const Place default_method = config["default"];
  if (!default_method) return;
  if (default_method.is_text() &&
      (default_method.text() == "none" || default_method.text() == "None"))
    return;
  default_method.not_honoured("the variables it is for must be named one by one here");
}

void import_normalizer(const Place& config, const Section& out) {
  const Section normalizer = out["normalizer"];
  for (const auto& [key, member] : config.members()) {
    if (key == "default") {
      normalizer.set(key, member.text("none"), member);
    } else if (key == "remap") {
      if (member) normalizer.set(key, member.whole(), member);
    } else if (key == "mean-std" || key == "std" || key == "min-max" || key == "max" ||
               key == "none") {
      if (member && !member.texts().empty()) normalizer.set(key, member.texts(), member);
    }
  }
  if (!config["default"]) normalizer.set("default", "none", config);
}

// A list of rules that several processors add to.
class Rules {
 public:
  Rules(const Section& out, const char* key) : out_(out), key_(key) {
    if (const Json* before = out.find(key)) list_ = *before;
  }
  void add(const Json& rule, const Place& variables) { add(rule, variables.texts(), variables); }
  void add(const Json& rule, const std::vector<std::string>& names, const Place& origin) {
    if (names.empty()) return;
    Json whole{{"variables", names}};
    whole.update(rule);
    list_.push_back(whole);
    out_.set(key_, list_, origin);
  }

 private:
  const Section& out_;
  const char* key_;
  Json list_ = Json::array();
};

// Translates a key of an imputer, which stands for a statistic, a constant or a variable. Returns
// null after a remark.
Json impute_rule(const std::string& name, const std::string& key, const Place& place) {
  if (name == "CopyImputer") return {{"method", "copy"}, {"from", key}};
  if (name == "ConstantImputer") {
    const Json value = yaml_scalar(key);
    if (!value.is_number()) throw ConfigError(place.path(), "is no number to fill NaN with");
    return {{"method", "constant"}, {"value", value}};
  }
  if (key == "mean" || key == "minimum" || key == "maximum" || key == "stdev")
    return {{"method", key}};
  place.not_honoured("NaN can be filled with mean, minimum, maximum or stdev");
  return nullptr;
}

// `others` are the variables that nothing else names.
void import_imputer(const std::string& name, const Place& config, const Section& out,
                    std::vector<std::string> others) {
  const bool knows_variables = !others.empty();
  Rules rules(out, "imputer");
  for (const auto& [key, variables] : config.members()) {
    if (key == "default" || !variables) continue;
    for (const std::string& variable : variables.texts())
      std::erase(others, variable);
    if (key == "none") continue;
    const Json rule = impute_rule(name, key, variables);
    if (!rule.is_null()) rules.add(rule, variables);
  }
  const Place fallback = config["default"];
  if (!knows_variables) return expect_no_default(config);
  const std::string key = fallback.text("none");
  if (key == "none" || key == "None") return;
  const Json rule = impute_rule(name, key, fallback);
  if (!rule.is_null()) rules.add(rule, others, fallback);
}

Json remap_options(const Place& options) {
  static const std::map<std::string, std::string> names{
      {"lambd", "exponent"},
      {"clip_negative", "clip_negative"},
      {"tangent_linear_above_one", "linear_above_one"},
      {"rho", "rho"},
      {"c", "c"},
      {"scale", "scale"},
      {"shift", "shift"},
      {"lower_atom", "lower"},
      {"upper_atom", "upper"},
      {"lower_target", "lower_target"},
      {"upper_target", "upper_target"},
      {"eps", "epsilon"}};
  Json translated = Json::object();
  for (const auto& [key, value] : options.members()) {
    const auto found = names.find(key);
    if (found == names.end()) {
      value.not_honoured("the method has no such option here");
    } else if (value) {
      translated[found->second] = value.whole();
    }
  }
  return translated;
}

void import_remapper(const Place& config, const Section& out) {
  Rules rules(out, "remapper");
  for (const auto& [key, variables] : config.members()) {
    if (key == "default" || key == "none" || key == "method_kwargs" || !variables) continue;
    Json rule{{"method", key}};
    rule.update(remap_options(config["method_kwargs"][key]));
    rules.add(rule, variables);
  }
  config["none"].mark();
  expect_no_default(config);
}

void import_postprocessor(const std::string& name, const Place& config, const Section& out) {
  Rules rules(out, "postprocessor");
  const Place normalizer = config["normalizer"], other = config["remap"];
  for (const auto& [key, variables] : config.members()) {
    if (key == "default" || key == "none" || key == "normalizer" || key == "remap" || !variables)
      continue;
    const Json value = yaml_scalar(key);
    if (name == "Postprocessor") {
      rules.add({{"method", key}}, variables);
    } else if (name == "ConditionalNaNPostprocessor") {
      rules.add({{"method", "conditional_nan"}, {"from", other.text()}}, variables);
    } else if (name == "ConditionalZeroPostprocessor" && value.is_number()) {
      rules.add({{"method", "conditional_zero"}, {"value", value}, {"from", other.text()}},
                variables);
    } else if (name == "NormalizedReluPostprocessor" && value.is_number()) {
      rules.add({{"method", "threshold"}, {"value", value}}, variables);
    } else {
      variables.not_honoured("there is no such postprocessor");
    }
  }
  normalizer.expect("none", "thresholds are in physical units here");
  config["none"].mark();
  expect_no_default(config);
}

}  // namespace

void import_processors(const Place& processors, const Section& out,
                       const std::vector<std::string>& variables) {
  // Here values are filled first, then mapped, then normalised, whatever the order they stand in.
  enum Stage { kFill, kMap, kNormalise, kAfter };
  Stage last = kFill;
  bool normalises = false;
  for (const auto& [key, processor] : processors.members()) {
    if (!processor) continue;
    const std::string name = processor.class_name();
    const Place config = processor["config"];
    Stage stage = kAfter;
    if (name == "InputNormalizer") {
      stage = kNormalise;
      normalises = true;
      import_normalizer(config, out);
    } else if (name == "InputImputer" || name == "ConstantImputer" || name == "CopyImputer") {
      stage = kFill;
      import_imputer(name, config, out, variables);
    } else if (name == "Remapper" || name == "Monomapper") {
      stage = kMap;
      import_remapper(config, out);
    } else if (name.ends_with("Postprocessor")) {
      import_postprocessor(name, config, out);
    } else {
      processor.not_honoured(concat("there is no processor ", name));
      continue;
    }
    if (stage < last && stage != kAfter) {
      processor["_target_"].not_honoured(
          "stands after one that is applied later here: NaN are filled first, then values are "
          "mapped, then normalised");
    }
    if (stage != kAfter) last = std::max(last, stage);
  }
  if (!normalises) out["normalizer"].set("default", "none", processors);
}

Imported import_processor_section(const Json& processors,
                                  const std::vector<std::string>& variables) {
  const Source source(Json{{"processors", processors}});
  Imported imported;
  import_processors(source.root()["processors"], Section(imported.target, {"data"}), variables);
  imported.remarks = source.remarks();
  return imported;
}

}  // namespace aifs::anemoi
