// SPDX-License-Identifier: Apache-2.0
#include "train/loss/sparse_rows.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;
using test::max_difference;
using test::random_tensor;

namespace {

const std::vector<int64_t> kRow{2, 0, 0, 2, 2}, kColumn{3, 1, 0, 0, 3};
const std::vector<float> kValue{0.5f, 2.0f, -1.0f, 3.0f, 0.25f};

SparseRows matrix() {
  return SparseRows(kRow, kColumn, kValue, 3, 4);
}

at::Tensor dense() {
  at::Tensor full = at::zeros({3, 4}, at::kDouble);
  for (size_t e = 0; e < kRow.size(); ++e)
    full[kRow[e]][kColumn[e]] += static_cast<double>(kValue[e]);
  return full;
}

}  // namespace

TEST_CASE("a sparse matrix does what the dense one does, both ways", "[sparse_rows]") {
  const at::Tensor x = random_tensor({2, 2, 4, 3}, 1), y = random_tensor({2, 2, 3, 5}, 2);
  REQUIRE(max_difference(matrix().apply(x), at::matmul(dense(), x)) <= 1e-14);
  REQUIRE(max_difference(matrix().apply_transposed(y), at::matmul(dense().t(), y)) <= 1e-14);
}

TEST_CASE("gradients go through the transposed matrix", "[sparse_rows]") {
  const SparseRows m = matrix();
  REQUIRE(test::gradient_error([&](const auto& in) { return m.apply(in[0]); },
                               {random_tensor({2, 4, 3}, 3)}) <= test::gradient_tolerance());
  REQUIRE(test::gradient_error([&](const auto& in) { return m.apply_transposed(in[0]); },
                               {random_tensor({2, 3, 3}, 4)}) <= test::gradient_tolerance());
}

TEST_CASE("entries outside the matrix and fields of other sizes are refused", "[sparse_rows]") {
  REQUIRE_THROWS_AS(SparseRows(kRow, kColumn, kValue, 2, 4), Error);
  REQUIRE_THROWS_AS(matrix().apply(random_tensor({3, 1}, 5)), Error);
}

TEST_CASE("rows are divided by their sum, empty ones left", "[sparse_rows]") {
  const std::vector<int64_t> row{0, 0, 1};
  const std::vector<float> values = row_normalised(row, std::vector<float>{1, 3, 0}, 2);
  REQUIRE(values == std::vector<float>{0.25f, 0.75f, 0.0f});
}

TEST_CASE("a smoother is a mean of near nodes, weighted by distance", "[sparse_rows]") {
  graph::NodeSet nodes;
  nodes.lat_rad = {0, 0, 0, 0};
  nodes.lon_rad = {0.0f, 0.1f, 0.3f, 1.0f};
  const SparseRowsPtr smoother = gaussian_smoother(nodes, nodes, 2, 0.1);
  const at::Tensor field = at::tensor({1.0, 0.0, 0.0, 5.0}, at::kDouble).unsqueeze(1);
  const at::Tensor smooth = smoother->apply(field).squeeze(1);
  const double neighbour = std::exp(-0.5);
  REQUIRE(std::abs(smooth[0].item<double>() - 1 / (1 + neighbour)) <= 1e-6);
  REQUIRE(std::abs(smooth[1].item<double>() - neighbour / (1 + neighbour)) <= 1e-6);
  const at::Tensor ones = at::ones({4, 1}, at::kDouble);
  REQUIRE(max_difference(smoother->apply(ones), ones) <= 1e-6);
}
