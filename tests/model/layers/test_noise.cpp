// SPDX-License-Identifier: Apache-2.0
#include "model/layers/noise.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

NodeTensors nodes(int64_t count) {
  return {.latlon_rad = at::zeros({count, 2})};
}

}  // namespace

TEST_CASE("noise is scaled, projected and taken through its MLP", "[noise]") {
  const SparseMatrix to_mesh =
      SparseMatrix::create(at::tensor({0, 1, 1}, at::kLong), at::tensor({2, 0, 3}, at::kLong),
                           at::tensor({1.0, 0.5, 0.25}).to(at::kDouble), 2, 4);
  ParameterSet parameters(at::kDouble, 1);
  const ParameterScope root(parameters);
  const NoiseOptions options{.channels = 3, .hidden = 5, .std = 2.0};
  const NoiseInjector injector(root / "a", options, nodes(2), to_mesh),
      direct(root / "b", options, nodes(2), {});
  for (const Parameter& p : parameters.entries()) {
    if (p.name.starts_with("b.")) parameters.assign("a" + p.name.substr(1), p.tensor.detach());
  }
  const at::Tensor noise = random_tensor({2, 3, 4, 3}, 1);
  const at::Tensor at_mesh =
      at::stack({noise.select(2, 2), 0.5 * noise.select(2, 0) + 0.25 * noise.select(2, 3)}, 2);
  REQUIRE(injector.forward(noise).sizes() == at::IntArrayRef{2 * 3 * 2, 3});
  REQUIRE(max_difference(injector.forward(noise), direct.forward(at_mesh)) <= 1e-14);
  REQUIRE(injector.draw(2, 3, noise.options()).sizes() == noise.sizes());
  REQUIRE_THROWS_AS(injector.forward(at_mesh), Error);
}

TEST_CASE("the standard deviation scales what enters the MLP", "[noise]") {
  ParameterSet one(at::kDouble, 1), two(at::kDouble, 1);
  const NoiseInjector a(ParameterScope(one), {.std = 1.0}, nodes(6), {});
  const NoiseInjector b(ParameterScope(two), {.std = 3.0}, nodes(6), {});
  const at::Tensor noise = random_tensor({1, 2, 6, 4}, 1);
  REQUIRE(max_difference(a.forward(3.0 * noise), b.forward(noise)) <= 1e-14);
}
