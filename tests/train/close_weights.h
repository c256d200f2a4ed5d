// SPDX-License-Identifier: Apache-2.0
// Weights of scalers against numbers of Anemoi's own tests (specification of training, appendix A.2
// and A.3), which are given to six digits.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/tensors.h"

namespace aifs::test {

inline const std::vector<std::string>& scaled_names() {
  static const std::vector<std::string> names{"y_50", "y_500", "y_850", "q", "z", "other", "d"};
  return names;
}

inline const std::map<std::string, double>& general_weights() {
  static const std::map<std::string, double> weights{{"y", 0.5}, {"z", 0.1}, {"other", 100.0}};
  return weights;
}

// Requires fp32, and at most this largest error over the largest expected value.
inline void require_close(const at::Tensor& weights, const std::vector<double>& expected,
                          double relative = 5e-6) {
  REQUIRE(weights.scalar_type() == at::kFloat);
  const at::Tensor e = at::tensor(expected, at::kDouble);
  REQUIRE(max_difference(weights / e, at::ones_like(e)) <= relative);
}

}  // namespace aifs::test
