// SPDX-License-Identifier: Apache-2.0
// Maps of single variables that make their distribution easier to learn, between filling NaN and
// normalising (Anemoi's Remapper); undone after the inverse of the normaliser. The statistics that
// the normaliser uses are those of the dataset, not of the mapped values: choose its method
// accordingly (often "none").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"

namespace aifs::data {

enum class RemapMethod {
  kLog1p,
  kSqrt,
  kPower,
  kBoxCox,
  kAtanh,
  kAsinh,
  kAffine,
  kDisplace,
  kNone
};

// Keys of the options that a method has.
std::vector<std::string> options_of(RemapMethod method);

struct RemapRule {
  std::vector<std::string> variables;
  RemapMethod method = RemapMethod::kLog1p;
  std::optional<double> exponent = {};  // power, boxcox
  double rho = 2.0;                     // atanh
  double c = 1.0;                       // asinh
  double scale = 1.0, shift = 0.0;      // affine
  bool clip_negative = false;           // power, boxcox
  bool linear_above_one = false;        // power: continued by its tangent at 1
  // displace: values at the ends of the range (up to epsilon) move to the targets outside. One of
  // the ends may be missing: nothing moves there, and nothing is cut off on the way back.
  std::optional<double> lower = {}, upper = {}, lower_target = {}, upper_target = {};
  double epsilon = 0.0;

  void bind(config::Binder& b);
  // Throws ConfigError for options that the method does not have or that cannot be undone.
  void validate(const std::string& path) const;
  // `exponent`, or the method's own: 0.33 of power, 0.5 of boxcox.
  double effective_exponent() const;

  // One value, in fp32 arithmetic as in Anemoi; throws DataError outside the domain of the method.
  // NaN stays NaN.
  float forward(float x) const;
  float inverse(float y) const;
};

class Remapper {
 public:
  Remapper() = default;
  // Throws ConfigError (path "data.remapper.<i>") for unknown or repeated names. Variables of
  // method none are left alone, and count as named.
  Remapper(const std::vector<std::string>& variables, const std::vector<RemapRule>& rules);

  bool empty() const { return entries_.empty(); }
  // The rule of a data column, or null: it is not mapped.
  const RemapRule* rule_of(int64_t column) const;
  // In place on rows of V values. Throws DataError naming the variable outside a domain.
  void forward(std::span<float> rows) const;
  // In place on rows of columns.size() values that hold the data columns `columns`.
  void inverse(std::span<float> rows, std::span<const int64_t> columns) const;

 private:
  struct Entry {
    int64_t column;
    RemapRule rule;
    std::string name;
  };
  std::vector<Entry> entries_;
  int64_t width_ = 0;
};

constexpr auto enum_table(RemapMethod) {
  using enum RemapMethod;
  return std::to_array<EnumName<RemapMethod>>({{kLog1p, "log1p"},
                                               {kSqrt, "sqrt"},
                                               {kPower, "power"},
                                               {kBoxCox, "boxcox"},
                                               {kAtanh, "atanh"},
                                               {kAsinh, "asinh"},
                                               {kAffine, "affine"},
                                               {kDisplace, "displace_boundary_atoms"},
                                               {kNone, "none"}});
}

}  // namespace aifs::data
