// SPDX-License-Identifier: Apache-2.0
// Per-variable affine maps between physical and normalised values (Anemoi's InputNormalizer).
//
// The tables are computed in fp64 and rounded to fp32; forward is a multiplication and an addition,
// each rounded, and the inverse a subtraction and a division: other arithmetic differs in the last
// bit from what existing models were trained with.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"
#include "data/fields/dataset.h"

namespace aifs::data {

enum class NormMethod { kMeanStd, kStd, kMinMax, kMax, kNone };

struct NormaliserOptions {
  NormMethod default_method = NormMethod::kMeanStd;
  std::vector<std::string> mean_std = {}, std = {}, min_max = {}, max = {}, none = {};
  std::map<std::string, std::string> remap = {};  // variable -> variable whose statistics it uses

  void bind(config::Binder& b);
};

// fp32 tables over all dataset columns.
struct Normaliser {
  std::vector<float> mul, add;  // (V)

  // `statistics` is changed by remap, as in Anemoi: later users see the remapped values.
  // Throws ConfigError for unknown names or names under two methods, DataError naming the
  // variable if a statistic that is needed is NaN, infinite or a zero divisor.
  static Normaliser create(const std::vector<std::string>& variables, Statistics& statistics,
                           const NormaliserOptions& options);

  // In place on rows of V values: x * mul + add.
  void forward(std::span<float> rows) const;
  // (y - add) / mul for one column.
  float inverse(float y, int64_t column) const {
    return (y - add[static_cast<size_t>(column)]) / mul[static_cast<size_t>(column)];
  }
};

constexpr auto enum_table(NormMethod) {
  using enum NormMethod;
  return std::to_array<EnumName<NormMethod>>({{kMeanStd, "mean-std"},
                                              {kStd, "std"},
                                              {kMinMax, "min-max"},
                                              {kMax, "max"},
                                              {kNone, "none"}});
}

}  // namespace aifs::data
