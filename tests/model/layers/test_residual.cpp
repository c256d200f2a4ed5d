// SPDX-License-Identifier: Apache-2.0
#include "model/layers/residual.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

ResidualInputs inputs() {
  return {.times_in = 3, .input_prognostic = {0, 2}, .path = "model.residual"};
}

at::Tensor fields() {
  return random_tensor({2, 3, 1, 5, 4}, 1);
}

}  // namespace

TEST_CASE("skip takes the prognostic variables of an input time", "[residual]") {
  ParameterSet parameters(at::kDouble, 1);
  const at::Tensor columns = at::tensor({0, 2}, at::kLong);
  for (const auto& [step, time] : {std::pair<int64_t, int64_t>{-1, 2}, {-3, 0}, {1, 1}}) {
    const auto residual = make_residual(ParameterScope(parameters), {.step = step}, inputs());
    REQUIRE(max_difference(residual->forward(fields()),
                           fields().narrow(1, time, 1).index_select(-1, columns)) == 0.0);
  }
  for (const int64_t step : {-4, 3}) {
    REQUIRE_THROWS_WITH(make_residual(ParameterScope(parameters), {.step = step}, inputs()),
                        ContainsSubstring("model.residual.step"));
  }
}

TEST_CASE("none is no residual", "[residual]") {
  ParameterSet parameters(at::kDouble, 1);
  REQUIRE(make_residual(ParameterScope(parameters), {.kind = ResidualKind::kNone}, inputs()) ==
          nullptr);
}

TEST_CASE("truncated goes down to the coarse grid and up again", "[residual]") {
  ResidualInputs in = inputs();
  const at::Tensor one = at::ones({5}, at::kDouble);
  // Cells 0-2 and 3-4 are averaged, and everybody gets the mean back.
  in.down = SparseMatrix::create(at::tensor({0, 0, 0, 1, 1}, at::kLong),
                                 at::tensor({0, 1, 2, 3, 4}, at::kLong), one, 2, 5)
                .row_normalised();
  in.up = SparseMatrix::create(at::tensor({0, 1, 2, 3, 4}, at::kLong),
                               at::tensor({0, 0, 0, 1, 1}, at::kLong), one, 5, 2);
  ParameterSet parameters(at::kDouble, 1);
  const auto residual =
      make_residual(ParameterScope(parameters), {.kind = ResidualKind::kTruncated}, in);
  const at::Tensor y = residual->forward(fields());
  const at::Tensor newest = fields().select(1, 2);  // (B, E, N, V)
  REQUIRE(max_difference(y[1][0][0][1][1], newest[1][0].narrow(0, 0, 3).select(1, 2).mean()) <=
          1e-15);
  REQUIRE(max_difference(y[0][0][0][4][0], newest[0][0].narrow(0, 3, 2).select(1, 0).mean()) <=
          1e-15);
  const auto function = [&](const std::vector<at::Tensor>& list) {
    return residual->forward(list[0]);
  };
  REQUIRE(test::gradient_error(function, {fields()}) <= test::gradient_tolerance());
}

TEST_CASE("truncated reads its matrices from files", "[residual]") {
  ResidualInputs in = inputs();
  in.nodes.latlon_rad = at::zeros({5, 2});
  ResidualOptions options{.kind = ResidualKind::kTruncated,
                          .truncation_down = test::fixture("npz/down_2x5.npz").string(),
                          .truncation_up = test::fixture("npz/up_5x2.npz").string()};
  options.validate("model.residual");
  ParameterSet parameters(at::kDouble, 1);
  const auto residual = make_residual(ParameterScope(parameters), options, in);
  const at::Tensor newest = fields().select(1, 2);  // (B, E, N, V)
  REQUIRE(max_difference(residual->forward(fields())[1][0][0][1][1],
                         newest[1][0].narrow(0, 0, 3).select(1, 2).mean()) <= 1e-6);
  in.nodes.latlon_rad = at::zeros({6, 2});
  REQUIRE_THROWS_WITH(make_residual(ParameterScope(parameters), options, in),
                      ContainsSubstring("down_2x5.npz"));
  options.truncation_up = "";
  REQUIRE_THROWS_WITH(options.validate("model.residual"), ContainsSubstring("truncation_up"));
}

TEST_CASE("truncated makes its matrices for a grid by name", "[residual]") {
  ResidualInputs in = inputs();
  in.nodes.latlon_rad = random_tensor({5, 2}, 3).to(at::kFloat).clamp(-1.5, 1.5);
  ResidualOptions options{.kind = ResidualKind::kTruncated, .truncation_grid = "tri1"};
  ParameterSet parameters(at::kDouble, 1);
  const auto residual = make_residual(ParameterScope(parameters), options, in);
  // Means of means of ones are ones.
  const at::Tensor ones = at::ones({1, 3, 1, 5, 4}, at::kDouble);
  REQUIRE(max_difference(residual->forward(ones), at::ones({1, 1, 1, 5, 2}, at::kDouble)) <= 1e-6);
  options.truncation_grid = "tri";
  REQUIRE_THROWS_WITH(make_residual(ParameterScope(parameters), options, in),
                      ContainsSubstring("model.residual.truncation_grid"));
  options.truncation_grid = "";
  REQUIRE_THROWS_WITH(options.validate("model.residual"), ContainsSubstring("truncation_grid"));
}
