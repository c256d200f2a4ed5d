// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/normaliser.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace aifs::data {

namespace {

constexpr const char* kPath = "data.normalizer";

size_t column_of(const std::vector<std::string>& variables, const std::string& name,
                 const std::string& key) {
  const auto found = std::find(variables.begin(), variables.end(), name);
  if (found == variables.end()) {
    throw ConfigError(concat(kPath, ".", key), concat("the dataset has no variable '", name, "'"),
                      nearest_names(name, variables));
  }
  return static_cast<size_t>(found - variables.begin());
}

std::vector<NormMethod> methods_of(const std::vector<std::string>& variables,
                                   const NormaliserOptions& options) {
  std::vector<NormMethod> methods(variables.size(), options.default_method);
  std::vector<bool> named(variables.size(), false);
  const auto assign = [&](const std::vector<std::string>& names, NormMethod method) {
    for (const std::string& name : names) {
      const std::string key = enum_name(method);
      const size_t v = column_of(variables, name, key);
      if (named[v]) {
        throw ConfigError(concat(kPath, ".", key), concat("'", name, "' is named twice"));
      }
      named[v] = true;
      methods[v] = method;
    }
  };
  assign(options.mean_std, NormMethod::kMeanStd);
  assign(options.std, NormMethod::kStd);
  assign(options.min_max, NormMethod::kMinMax);
  assign(options.max, NormMethod::kMax);
  assign(options.none, NormMethod::kNone);
  return methods;
}

void remap_statistics(const std::vector<std::string>& variables, Statistics& statistics,
                      const std::map<std::string, std::string>& remap) {
  const Statistics original = statistics;
  for (const auto& [name, from_name] : remap) {
    const size_t to = column_of(variables, name, "remap");
    const size_t from = column_of(variables, from_name, "remap");
    statistics.mean[to] = original.mean[from];
    statistics.stdev[to] = original.stdev[from];
    statistics.minimum[to] = original.minimum[from];
    statistics.maximum[to] = original.maximum[from];
  }
}

// The divisor of a method; refuses what would turn fields into NaN or infinity.
double checked_divisor(double divisor, const std::string& name, const char* what) {
  if (!std::isfinite(divisor) || divisor == 0.0) {
    throw DataError(
        concat("the statistics of variable '", name, "' give ", what, " = ", divisor),
        concat("normalise it otherwise (", kPath, ".none), drop it, or repair the dataset"));
  }
  return divisor;
}

// A standard deviation must be positive, too.
double checked_stdev(double stdev, const std::string& name) {
  checked_divisor(stdev, name, "stdev");
  if (stdev < 0.0) {
    throw DataError(
        concat("the statistics of variable '", name, "' give a negative stdev = ", stdev),
        "repair the statistics of the dataset");
  }
  return stdev;
}

double checked_offset(double offset, const std::string& name, const char* what) {
  if (!std::isfinite(offset)) {
    throw DataError(concat("the statistics of variable '", name, "' give ", what, " = ", offset),
                    "repair the statistics of the dataset");
  }
  return offset;
}

}  // namespace

void NormaliserOptions::bind(config::Binder& b) {
  b.choice("default", default_method, {"method of the variables that are not named below"});
  b.text_list("mean-std", mean_std, {"variables with (x - mean) / stdev"});
  b.text_list("std", std, {"variables with x / stdev"});
  b.text_list("min-max", min_max, {"variables with (x - minimum) / (maximum - minimum)"});
  b.text_list("max", max, {"variables with x / maximum"});
  b.text_list("none", none, {"variables left as they are"});
  b.text_map("remap", remap, {"variable: another variable whose statistics it uses"});
}

Normaliser Normaliser::create(const std::vector<std::string>& variables, Statistics& statistics,
                              const NormaliserOptions& options) {
  const std::vector<NormMethod> methods = methods_of(variables, options);
  remap_statistics(variables, statistics, options.remap);
  Normaliser tables;
  for (size_t v = 0; v < variables.size(); ++v) {
    const std::string& name = variables[v];
    double mul = 1.0, add = 0.0;
    switch (methods[v]) {
      case NormMethod::kMeanStd: {
        const double stdev = checked_stdev(statistics.stdev[v], name);
        mul = 1.0 / stdev;
        add = -checked_offset(statistics.mean[v], name, "mean") / stdev;
        break;
      }
      case NormMethod::kStd:
        mul = 1.0 / checked_stdev(statistics.stdev[v], name);
        break;
      case NormMethod::kMinMax: {
        const double range = checked_divisor(statistics.maximum[v] - statistics.minimum[v], name,
                                             "maximum - minimum");
        mul = 1.0 / range;
        add = -statistics.minimum[v] / range;
        break;
      }
      case NormMethod::kMax:
        mul = 1.0 / checked_divisor(statistics.maximum[v], name, "maximum");
        break;
      case NormMethod::kNone:
        break;
    }
    const bool fits = std::isfinite(static_cast<float>(mul)) &&
                      std::isfinite(static_cast<float>(add)) && static_cast<float>(mul) != 0.0f;
    if (!fits) {
      throw DataError(concat("the statistics of variable '", name, "' are beyond float32: factor ",
                             mul, ", offset ", add),
                      concat("normalise it otherwise (", kPath, ".none), or drop it"));
    }
    tables.mul.push_back(static_cast<float>(mul));
    tables.add.push_back(static_cast<float>(add));
  }
  return tables;
}

void Normaliser::forward(std::span<float> rows) const {
  const size_t width = mul.size();
  AIFS_CHECK(rows.size() % width == 0, rows.size(), " values in rows of ", width);
  for (size_t start = 0; start < rows.size(); start += width) {
    float* row = rows.data() + start;
    for (size_t v = 0; v < width; ++v)
      row[v] = row[v] * mul[v] + add[v];  // two roundings
  }
}

}  // namespace aifs::data
