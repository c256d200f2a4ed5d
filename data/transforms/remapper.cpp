// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/remapper.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace aifs::data {

namespace {

float f(double x) {
  return static_cast<float>(x);
}

[[noreturn]] void outside(const char* method, float x, const char* domain) {
  throw DataError(concat("method ", method, " is not defined at ", x), domain);
}

float power_forward(float x, float exponent, const RemapRule& rule) {
  if (x < 0.0f) {
    if (!rule.clip_negative) outside("power", x, "values must be >= 0, or set clip_negative");
    x = 0.0f;
  }
  if (rule.linear_above_one && x > 1.0f) return exponent * x + (1.0f - exponent);
  return std::pow(x, exponent);
}

float power_inverse(float y, float exponent, const RemapRule& rule) {
  if (rule.linear_above_one && y > 1.0f) return (y - (1.0f - exponent)) / exponent;
  return std::pow(std::max(y, 0.0f), 1.0f / exponent);
}

float boxcox_forward(float x, float exponent, bool clip_negative) {
  if (exponent == 0.0f && x <= 0.0f) outside("boxcox", x, "values must be positive");
  if (x < 0.0f) {
    if (!clip_negative) outside("boxcox", x, "values must be >= 0, or set clip_negative");
    x = 0.0f;
  }
  return exponent == 0.0f ? std::log(x) : (std::pow(x, exponent) - 1.0f) / exponent;
}

float atanh_inverse(float y, float rho) {
  const float x = rho == 0.0f ? y : (std::tanh(rho * y) / std::tanh(rho) + 1.0f) / 2.0f;
  return std::clamp(x, 0.0f, 1.0f);
}

}  // namespace

std::vector<std::string> options_of(RemapMethod method) {
  switch (method) {
    case RemapMethod::kPower:
      return {"exponent", "clip_negative", "linear_above_one"};
    case RemapMethod::kBoxCox:
      return {"exponent", "clip_negative"};
    case RemapMethod::kAtanh:
      return {"rho"};
    case RemapMethod::kAsinh:
      return {"c"};
    case RemapMethod::kAffine:
      return {"scale", "shift"};
    case RemapMethod::kDisplace:
      return {"lower", "upper", "lower_target", "upper_target", "epsilon"};
    case RemapMethod::kLog1p:
    case RemapMethod::kSqrt:
    case RemapMethod::kNone:
      break;
  }
  return {};
}

void RemapRule::bind(config::Binder& b) {
  b.text_list("variables", variables, {"variables that are mapped"});
  b.choice("method", method, {"the map; none leaves the values as they are"});
  b.number_or_null("exponent", exponent, {.min = 0.0},
                   {"power (null: 0.33), boxcox (null: 0.5; 0 is the logarithm)"});
  b.boolean("clip_negative", clip_negative, {"power, boxcox: negative values count as 0"});
  b.boolean("linear_above_one", linear_above_one, {"power: go on with the tangent above 1"});
  b.number("rho", rho, {.min = 0.0}, {"atanh: how much the ends of 0 to 1 are stretched"});
  b.number("c", c, {.min = 1e-30}, {"asinh: where it turns from linear to logarithmic", "1/unit"});
  b.number("scale", scale, {}, {"affine: factor"});
  b.number("shift", shift, {}, {"affine: added after the factor"});
  b.number_or_null("lower", lower, {},
                   {"displace_boundary_atoms: lower end of the range; null: it has none"});
  b.number_or_null("upper", upper, {},
                   {"displace_boundary_atoms: upper end of the range; null: it has none"});
  b.number_or_null("lower_target", lower_target, {},
                   {"displace_boundary_atoms: where the lower end goes, below it"});
  b.number_or_null("upper_target", upper_target, {},
                   {"displace_boundary_atoms: where the upper end goes, above it"});
  b.number("epsilon", epsilon, {.min = 0.0},
           {"displace_boundary_atoms: how near to an end counts as the end"});
}

namespace {

void check_ends(const RemapRule& rule, const std::string& path) {
  if (!rule.lower && !rule.upper)
    throw ConfigError(path + ".lower",
                      "the method needs an end of the range: lower, upper or both");
  const auto check = [&](const char* key, bool is_named, bool has_target, bool is_outside,
                         const char* rule_text) {
    if (is_named != has_target || !is_outside)
      throw ConfigError(path + key, concat(rule_text, ", and be there with it only"));
  };
  check(".lower_target", rule.lower.has_value(), rule.lower_target.has_value(),
        !rule.lower || !rule.lower_target || *rule.lower_target < *rule.lower,
        "must be below lower");
  check(".upper_target", rule.upper.has_value(), rule.upper_target.has_value(),
        !rule.upper || !rule.upper_target || *rule.upper_target > *rule.upper,
        "must be above upper");
  if (rule.lower && rule.upper && *rule.lower >= *rule.upper)
    throw ConfigError(path + ".upper", "must be above lower");
}

}  // namespace

double RemapRule::effective_exponent() const {
  constexpr double kPower = 0.33, kBoxCox = 0.5;
  return exponent.value_or(method == RemapMethod::kPower ? kPower : kBoxCox);
}

void RemapRule::validate(const std::string& path) const {
  if (variables.empty()) throw ConfigError(path + ".variables", "names no variable");
  std::vector<std::string> used = options_of(method);
  used.insert(used.end(), {"variables", "method"});
  config::refuse_unused(*this, used, path, concat("method ", enum_name(method)));
  if (method == RemapMethod::kPower && effective_exponent() == 0.0) {
    throw ConfigError(path + ".exponent", "must be positive");
  }
  if (method == RemapMethod::kAffine && scale == 0.0) {
    throw ConfigError(path + ".scale", "a factor of 0 cannot be undone");
  }
  if (method == RemapMethod::kDisplace) check_ends(*this, path);
}

float RemapRule::forward(float x) const {
  if (std::isnan(x)) return x;
  const float e = f(effective_exponent());
  switch (method) {
    case RemapMethod::kLog1p:
      if (x <= -1.0f) outside("log1p", x, "values must be above -1");
      return std::log1p(x);
    case RemapMethod::kSqrt:
      if (x < 0.0f) outside("sqrt", x, "values must be >= 0; power may clip negative ones");
      return std::pow(x, 0.5f);
    case RemapMethod::kPower:
      return power_forward(x, e, *this);
    case RemapMethod::kBoxCox:
      return boxcox_forward(x, e, clip_negative);
    case RemapMethod::kAtanh:
      if (x < 0.0f || x > 1.0f) outside("atanh", x, "values must be between 0 and 1");
      return f(rho) == 0.0f ? x : std::atanh(std::tanh(f(rho)) * (2.0f * x - 1.0f)) / f(rho);
    case RemapMethod::kAsinh:
      return std::asinh(f(c) * x);
    case RemapMethod::kAffine:
      return x * f(scale) + f(shift);
    case RemapMethod::kDisplace:
      if (lower && x <= f(*lower + epsilon)) return f(*lower_target);
      if (upper && x >= f(*upper - epsilon)) return f(*upper_target);
      return x;
    case RemapMethod::kNone:
      return x;
  }
  return x;
}

float RemapRule::inverse(float y) const {
  if (std::isnan(y)) return y;
  const float e = f(effective_exponent());
  switch (method) {
    case RemapMethod::kLog1p:
      return std::expm1(y);
    case RemapMethod::kSqrt:
      return std::pow(std::max(y, 0.0f), 2.0f);
    case RemapMethod::kPower:
      return power_inverse(y, e, *this);
    case RemapMethod::kBoxCox:
      return e == 0.0f ? std::exp(y) : std::pow(std::max(e * y + 1.0f, 0.0f), 1.0f / e);
    case RemapMethod::kAtanh:
      return atanh_inverse(y, f(rho));
    case RemapMethod::kAsinh:
      return std::sinh(y) / f(c);
    case RemapMethod::kAffine:
      return (y - f(shift)) / f(scale);
    case RemapMethod::kDisplace:
      if (lower && y < f(*lower)) return f(*lower);
      return upper && y > f(*upper) ? f(*upper) : y;
    case RemapMethod::kNone:
      return y;
  }
  return y;
}

Remapper::Remapper(const std::vector<std::string>& variables, const std::vector<RemapRule>& rules)
    : width_(static_cast<int64_t>(variables.size())) {
  std::vector<bool> named(variables.size(), false);
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::string path = concat("data.remapper.", i, ".variables");
    for (const std::string& name : rules[i].variables) {
      const auto found = std::find(variables.begin(), variables.end(), name);
      if (found == variables.end()) {
        throw ConfigError(path, concat("the dataset has no variable '", name, "'"),
                          nearest_names(name, variables));
      }
      const int64_t column = found - variables.begin();
      if (named[static_cast<size_t>(column)])
        throw ConfigError(path, concat("'", name, "' is mapped twice"));
      named[static_cast<size_t>(column)] = true;
      if (rules[i].method != RemapMethod::kNone) entries_.push_back({column, rules[i], name});
    }
  }
}

const RemapRule* Remapper::rule_of(int64_t column) const {
  for (const Entry& entry : entries_) {
    if (entry.column == column) return &entry.rule;
  }
  return nullptr;
}

void Remapper::forward(std::span<float> rows) const {
  if (entries_.empty()) return;
  const auto width = static_cast<size_t>(width_);
  AIFS_CHECK(rows.size() % width == 0, rows.size(), " values in rows of ", width);
  for (const Entry& entry : entries_) {
    try {
      for (size_t i = static_cast<size_t>(entry.column); i < rows.size(); i += width)
        rows[i] = entry.rule.forward(rows[i]);
    } catch (const DataError& error) {
      throw DataError(concat("variable '", entry.name, "': ", error.what()), error.hint());
    }
  }
}

void Remapper::inverse(std::span<float> rows, std::span<const int64_t> columns) const {
  const size_t width = columns.size();
  AIFS_CHECK(width > 0 && rows.size() % width == 0, rows.size(), " values in rows of ", width);
  for (const Entry& entry : entries_) {
    const auto found = std::find(columns.begin(), columns.end(), entry.column);
    if (found == columns.end()) continue;
    for (size_t i = static_cast<size_t>(found - columns.begin()); i < rows.size(); i += width)
      rows[i] = entry.rule.inverse(rows[i]);
  }
}

}  // namespace aifs::data
