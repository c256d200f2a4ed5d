// SPDX-License-Identifier: Apache-2.0
// What is done to physical output after everything else has been undone (Anemoi's post-processors):
// limits, and values that follow from another variable. Training does not see it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"

namespace aifs::data {

// relu: max(x, 0); hardtanh: between -1 and 1; hardtanh_0_1: between 0 and 1; threshold: not below
// `value`; conditional_zero: `value` where the variable `from` is 0; conditional_nan: NaN where
// `from` is NaN.
enum class PostMethod {
  kRelu,
  kHardtanh,
  kHardtanh01,
  kThreshold,
  kConditionalZero,
  kConditionalNan
};

struct PostRule {
  std::vector<std::string> variables;
  PostMethod method = PostMethod::kRelu;
  double value = 0.0;
  std::string from = {};

  void bind(config::Binder& b);
  // Throws ConfigError for what the method lacks and for what it does not use.
  void validate(const std::string& path) const;
};

class PostProcessor {
 public:
  PostProcessor() = default;
  // `outputs`: names of the columns of a row. Throws ConfigError (path "data.postprocessor.<i>")
  // for a name that is not predicted.
  PostProcessor(const std::vector<std::string>& outputs, const std::vector<PostRule>& rules);

  bool empty() const { return entries_.empty(); }
  // In place on rows of all outputs, physical units; rules in their order. A rule looks at `from`
  // as it was before the rule, which may change it.
  void apply(std::span<float> rows) const;

 private:
  struct Entry {
    std::vector<size_t> columns;
    size_t from;
    PostMethod method;
    float value;
  };
  std::vector<Entry> entries_;
  size_t width_ = 0;
};

constexpr auto enum_table(PostMethod) {
  using enum PostMethod;
  return std::to_array<EnumName<PostMethod>>({{kRelu, "relu"},
                                              {kHardtanh, "hardtanh"},
                                              {kHardtanh01, "hardtanh_0_1"},
                                              {kThreshold, "threshold"},
                                              {kConditionalZero, "conditional_zero"},
                                              {kConditionalNan, "conditional_nan"}});
}

}  // namespace aifs::data
