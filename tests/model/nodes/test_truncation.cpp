// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/truncation.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "core/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/full_reference.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;

namespace {

at::Tensor floats(const SafetensorsFile& file, const std::string& name) {
  return at::tensor(at::ArrayRef<double>(file.doubles(name)), at::kDouble);
}

// Dense (rows, columns) from entries, and from a matrix of ours.
at::Tensor dense(const SafetensorsFile& file, const std::string& name, int64_t rows,
                 int64_t columns) {
  const std::vector<int64_t> index = file.integers("truncation/" + name + "_index");
  const at::Tensor both = at::tensor(index, at::kLong).view({2, -1});
  return at::zeros({rows, columns}, at::kDouble)
      .index_put({both[0], both[1]}, floats(file, "truncation/" + name + "_value"), true);
}
at::Tensor dense(const SparseMatrix& matrix) {
  return sparse_product(matrix.to(at::kDouble), at::eye(matrix.index->num_sources, at::kDouble));
}

}  // namespace

TEST_CASE("matrices equal those of the reference", "[truncation][full_reference]") {
  const fs::path shared = test::full_reference();
  const SafetensorsFile file(shared / "golden/models/gnn_swiglu_truncated.safetensors");
  const SafetensorsFile graph(shared / "golden/graphs/graph_o8_tri2.safetensors");
  const at::Tensor fine = floats(graph, "nodes/data/latlon_rad").view({-1, 2}).to(at::kFloat);
  const at::Tensor coarse = floats(file, "truncation/node_latlon_rad").view({-1, 2}).to(at::kFloat);
  const Truncation ours = make_truncation(fine, coarse, 4, 0.4);
  // Rows whose fourth neighbour is as near as a fifth may choose the other one.
  const auto rows_alike = [](const at::Tensor& a, const at::Tensor& b) {
    return ((a - b).abs().amax(1) < 1e-5).to(at::kDouble).mean().item<double>();
  };
  const int64_t n = fine.size(0), c = coarse.size(0);
  REQUIRE(rows_alike(dense(ours.down), dense(file, "down", c, n)) > 0.99);
  REQUIRE(rows_alike(dense(ours.up), dense(file, "up", n, c)) > 0.99);
}

TEST_CASE("every row is a mean of so many neighbours", "[truncation]") {
  const at::Tensor fine = coarse_grid("o8"), coarse = coarse_grid("tri1");
  REQUIRE(fine.sizes() == at::IntArrayRef{544, 2});
  REQUIRE(coarse.sizes() == at::IntArrayRef{42, 2});
  const Truncation truncation = make_truncation(fine, coarse, 3, 0.3);
  for (const SparseMatrix& matrix : {truncation.down, truncation.up}) {
    const at::Tensor rows = dense(matrix);
    REQUIRE(max_difference(rows.sum(1), at::ones({rows.size(0)}, at::kDouble)) <= 1e-6);
    REQUIRE((rows > 0).sum(1).eq(3).all().item<bool>());
  }
}

TEST_CASE("unknown grids are refused", "[truncation]") {
  for (const char* name : {"tri", "tri99", "trix", "q8", ""})
    REQUIRE_THROWS_AS(coarse_grid(name), Error);
}
