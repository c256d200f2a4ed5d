// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/post_processor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace aifs::data {

namespace {

bool is_conditional(PostMethod method) {
  return method == PostMethod::kConditionalZero || method == PostMethod::kConditionalNan;
}

bool has_value(PostMethod method) {
  return method == PostMethod::kThreshold || method == PostMethod::kConditionalZero;
}

// NaN stays NaN.
float relu(float x) {
  return x < 0.0f ? 0.0f : x;
}

float processed(PostMethod method, float x, float value, float from) {
  switch (method) {
    case PostMethod::kRelu:
      return relu(x);
    case PostMethod::kHardtanh:
      return std::isnan(x) ? x : std::clamp(x, -1.0f, 1.0f);
    case PostMethod::kHardtanh01:
      return std::isnan(x) ? x : std::clamp(x, 0.0f, 1.0f);
    case PostMethod::kThreshold:
      return relu(x - value) + value;  // two roundings, as in Anemoi
    case PostMethod::kConditionalZero:
      return from == 0.0f ? value : x;
    case PostMethod::kConditionalNan:
      return std::isnan(from) ? std::numeric_limits<float>::quiet_NaN() : x;
  }
  return x;
}

}  // namespace

void PostRule::bind(config::Binder& b) {
  b.text_list("variables", variables, {"predicted variables that are changed"});
  b.choice("method", method,
           {"limit below by 0, by -1 and 1, by 0 and 1, or below by value; or by another variable: "
            "value where it is 0, NaN where it is NaN"});
  b.number("value", value, {}, {"threshold, conditional_zero: the value", "physical unit"});
  b.text("from", from, {"conditional methods: the other variable"});
}

void PostRule::validate(const std::string& path) const {
  if (variables.empty()) throw ConfigError(path + ".variables", "names no variable");
  if (is_conditional(method) == from.empty()) {
    throw ConfigError(path + ".from", is_conditional(method) ? "the method needs another variable"
                                                             : "is for conditional methods only");
  }
  if (!has_value(method) && value != 0.0) {
    throw ConfigError(path + ".value", concat("is not for method ", enum_name(method)),
                      "threshold and conditional_zero have a value");
  }
}

PostProcessor::PostProcessor(const std::vector<std::string>& outputs,
                             const std::vector<PostRule>& rules)
    : width_(outputs.size()) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto position = [&](const std::string& name, const char* key) {
      const auto found = std::find(outputs.begin(), outputs.end(), name);
      if (found == outputs.end()) {
        throw ConfigError(concat("data.postprocessor.", i, ".", key),
                          concat("'", name, "' is not predicted"), nearest_names(name, outputs));
      }
      return static_cast<size_t>(found - outputs.begin());
    };
    Entry entry{.columns = {},
                .from = is_conditional(rules[i].method) ? position(rules[i].from, "from") : 0,
                .method = rules[i].method,
                .value = static_cast<float>(rules[i].value)};
    for (const std::string& name : rules[i].variables)
      entry.columns.push_back(position(name, "variables"));
    entries_.push_back(std::move(entry));
  }
}

void PostProcessor::apply(std::span<float> rows) const {
  if (entries_.empty()) return;
  AIFS_CHECK(rows.size() % width_ == 0, rows.size(), " values in rows of ", width_);
  for (size_t start = 0; start < rows.size(); start += width_) {
    float* row = rows.data() + start;
    for (const Entry& entry : entries_) {
      const float from = row[entry.from];
      for (const size_t column : entry.columns)
        row[column] = processed(entry.method, row[column], entry.value, from);
    }
  }
}

}  // namespace aifs::data
