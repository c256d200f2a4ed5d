// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/matrix_file.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/check.h"
#include "core/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"

using namespace aifs;
using model::read_matrix;
using test::max_difference;
using test::random_tensor;

namespace {

const char* const kOption = "model.residual.truncation_down";

struct Stored {
  std::vector<int64_t> index, shape;
  std::vector<float> value;
};

std::string written(const test::TemporaryFolder& folder, const Stored& m) {
  const auto count = static_cast<int64_t>(m.value.size());
  const std::string file = (folder.path() / "matrix.safetensors").string();
  write_safetensors(
      file, {{"index", DType::kI64, {2, static_cast<int64_t>(m.index.size()) / 2}, m.index.data()},
             {"value", DType::kF32, {count}, m.value.data()},
             {"shape", DType::kI64, {static_cast<int64_t>(m.shape.size())}, m.shape.data()}});
  return file;
}

const Stored& example() {
  static const Stored kExample{{1, 0, 1, 2, 0, 0}, {2, 3}, {2.0f, 3.0f, 4.0f}};
  return kExample;
}

}  // namespace

TEST_CASE("a matrix of tensors is the dense one", "[matrix_file]") {
  const test::TemporaryFolder folder;
  const at::Tensor dense = at::tensor({3.0, 0.0, 0.0, 4.0, 0.0, 2.0}, at::kDouble).view({2, 3});
  const at::Tensor x = random_tensor({3, 4}, 1);
  const auto matrix = read_matrix(written(folder, example()), 2, 3, kOption);
  REQUIRE(max_difference(sparse_product(matrix.to(at::kDouble), x), at::matmul(dense, x)) < 1e-14);
  REQUIRE(read_matrix(written(folder, example()), -1, -1, kOption).index->num_targets == 2);
}

TEST_CASE("npz files are told by their names", "[matrix_file]") {
  const auto down = read_matrix(test::fixture("npz/down_2x5.npz").string(), -1, 5, kOption);
  REQUIRE(down.index->num_targets == 2);
  REQUIRE(down.index->num_sources == 5);
}

TEST_CASE("what is no matrix of the wanted size is the fault of its option", "[matrix_file]") {
  const test::TemporaryFolder folder;
  const auto fault = [&](const Stored& m) { return written(folder, m); };
  REQUIRE_THROWS_WITH(read_matrix(fault(example()), 2, 4, kOption),
                      ContainsSubstring(kOption) && ContainsSubstring("2 x 3 where 2 x 4"));
  Stored outside = example();
  outside.index[3] = 3;
  REQUIRE_THROWS_WITH(read_matrix(fault(outside), -1, -1, kOption),
                      ContainsSubstring(kOption) && ContainsSubstring("outside"));
  Stored few = example();
  few.value.pop_back();
  REQUIRE_THROWS_AS(read_matrix(fault(few), -1, -1, kOption), ConfigError);
  Stored cube = example();
  cube.shape.push_back(1);
  REQUIRE_THROWS_AS(read_matrix(fault(cube), -1, -1, kOption), ConfigError);
  REQUIRE_THROWS_AS(read_matrix("nowhere.safetensors", -1, -1, kOption), ConfigError);
  REQUIRE_THROWS_AS(read_matrix("nowhere.npz", -1, -1, kOption), ConfigError);
}

TEST_CASE("values of a matrix that are not finite are refused", "[matrix_file]") {
  const test::TemporaryFolder folder;
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Stored m = example();
    m.value[2] = value;
    const std::string file = written(folder, m);
    REQUIRE_THROWS_AS(read_matrix(file, 2, 3, kOption), DataError);
    REQUIRE_THROWS_WITH(read_matrix(file, 2, 3, kOption),
                        ContainsSubstring(file) && ContainsSubstring("entry (1, 0)"));
  }
}
