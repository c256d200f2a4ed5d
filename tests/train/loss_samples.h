// SPDX-License-Identifier: Apache-2.0
// The fields and weights of the reference vectors of losses, and ranks that share their nodes.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/support/catch.h"
#include "train/loss/loss_term.h"

namespace aifs::test {

inline constexpr double kTenDigits = 5.1e-11;  // half a unit in the last digit given

// sin(0.3 k + 0.7 e) and cos(0.2 k), k = 1 + v + 3 g + 12 t; shapes (1, 2, E, 4, 3).
inline at::Tensor example_field(bool prediction, int64_t members) {
  at::Tensor field = at::empty({1, 2, members, 4, 3}, at::kDouble);
  auto values = field.accessor<double, 5>();
  for (int64_t t = 0; t < 2; ++t) {
    for (int64_t e = 0; e < members; ++e) {
      for (int64_t g = 0; g < 4; ++g) {
        for (int64_t v = 0; v < 3; ++v) {
          const auto k = static_cast<double>(1 + v + 3 * g + 12 * t);
          values[0][t][e][g][v] =
              prediction ? std::sin(0.3 * k + 0.7 * static_cast<double>(e)) : std::cos(0.2 * k);
        }
      }
    }
  }
  return field;
}

inline const at::Tensor& prediction() {
  static const at::Tensor field = example_field(true, 1);
  return field;
}
inline const at::Tensor& members() {
  static const at::Tensor field = example_field(true, 3);
  return field;
}
inline const at::Tensor& target() {
  static const at::Tensor field = example_field(false, 1);
  return field;
}

inline std::vector<train::Scaler> example_scalers() {
  const auto over = [](const char* name, const std::vector<double>& values, train::Axis axis) {
    return train::over_axis(name, at::tensor(values, at::kDouble), axis);
  };
  return {over("variable", {1, 0.5, 2}, train::kVariable),
          over("node", {0.1, 0.2, 0.3, 0.4}, train::kGrid), over("time", {0.5, 0.5}, train::kTime)};
}

inline train::ElementaryOptions example_options() {
  return {.scalers = example_scalers()};
}

inline void require_value(const at::Tensor& value, double expected) {
  REQUIRE(std::abs(value.item<double>() - expected) <= kTenDigits);
}

// Value and gradient (with respect to the prediction) of a loss of whole fields.
struct LossResult {
  at::Tensor value, gradient;
};

inline LossResult whole(const train::Loss& loss, const at::Tensor& p, const at::Tensor& y) {
  const at::Tensor leaf = p.clone().set_requires_grad(true);
  const at::Tensor value = loss(leaf, y);
  value.backward();
  return {value.detach(), leaf.grad()};
}

// Computes this by ranks that own nodes [cuts[r], cuts[r+1]). Each runs by itself; what the others
// would send is taken from the whole field, and partial sums from a first round.
inline LossResult by_ranks(const train::Loss& loss, const at::Tensor& p, const at::Tensor& y,
                           const std::vector<int64_t>& cuts) {
  std::vector<std::vector<at::Tensor>> partial(cuts.size() - 1);
  LossResult result;
  std::vector<at::Tensor> gradients;
  for (const bool first_round : {true, false}) {
    for (size_t r = 0; r + 1 < cuts.size(); ++r) {
      const int64_t begin = cuts[r], count = cuts[r + 1] - begin;
      size_t call_number = 0;
      train::LossCall call;
      call.nodes.first = begin;
      call.nodes.total = cuts.back();
      call.nodes.reduce = [&](const at::Tensor& own) {
        const size_t k = call_number++;
        if (first_round) {
          partial[r].push_back(own.detach());
          return own;
        }
        at::Tensor sum = own;
        for (size_t other = 0; other < partial.size(); ++other) {
          if (other != r) sum = sum + partial[other][k];
        }
        return sum;
      };
      call.nodes.collect = [&](const at::Tensor& own) {
        const at::Tensor& all = own.requires_grad() ? p : y;
        return at::cat({all.narrow(3, 0, begin), own,
                        all.narrow(3, begin + count, all.size(3) - begin - count)},
                       3);
      };
      const at::Tensor own = p.narrow(3, begin, count).clone().set_requires_grad(true);
      const at::Tensor value = loss(own, y.narrow(3, begin, count), call);
      if (first_round) continue;
      value.backward();
      gradients.push_back(own.grad());
      result.value = value.detach();
    }
  }
  result.gradient = at::cat(gradients, 3);
  return result;
}

}  // namespace aifs::test
