// SPDX-License-Identifier: Apache-2.0
#include "model/layers/ornstein.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "core/check.h"
#include "model/nodes/node_rows.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-12;

// The nodes of a small regular grid, at rough Gaussian latitudes.
at::Tensor grid_nodes(int64_t rings, int64_t points) {
  at::Tensor nodes = at::empty({rings * points, 2}, at::kFloat);
  for (int64_t r = 0; r < rings; ++r) {
    for (int64_t p = 0; p < points; ++p) {
      nodes[r * points + p][0] =
          1.4 - 2.8 * static_cast<double>(r) / static_cast<double>(rings - 1);
      nodes[r * points + p][1] = 0.5 * static_cast<double>(p);
    }
  }
  return nodes;
}

ResidualInputs inputs() {
  return {.times_in = 2,
          .input_names = {"t", "sun", "q"},
          .input_prognostic = {0, 2},
          .stdev = {2.0, 4.0},
          .stdev_tendency = {1.0, 1.0},
          .nodes = {.latlon_rad = grid_nodes(4, 10)}};
}

at::Tensor fields() {
  return random_tensor({2, 2, 1, 40, 3}, 1);
}

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

}  // namespace

TEST_CASE("scalar: gain, mean and regressors per variable", "[ornstein]") {
  ParameterSet parameters(at::kDouble, 1);
  const auto residual = make_scalar_ornstein(
      ParameterScope(parameters), {.theta_buffer = 0.1, .regressors = {"sun"}}, inputs());
  const at::Tensor w = random_tensor({3, 2}, 2);
  parameters.assign("weight", w);
  const at::Tensor x = fields(), y = residual->forward(x);
  for (const int64_t v : {0, 1}) {
    const double gain = 1.0 - sigmoid(w[0][v].item<double>()) * 0.9 - 0.1;
    const at::Tensor expected =
        gain * x[1][1][0].select(1, 2 * v) + w[1][v] + w[2][v] * x[1][1][0].select(1, 1);
    REQUIRE(max_difference(y[1][0][0].select(1, v), expected) <= kRounding);
  }
}

TEST_CASE("the pull starts as told, or from the statistics", "[ornstein]") {
  const auto start = [](const ResidualOptions& options) {
    ParameterSet parameters(at::kDouble, 1);
    make_scalar_ornstein(ParameterScope(parameters), options, inputs());
    const at::Tensor w = parameters.at("weight").tensor[0];
    return std::pair(sigmoid(w[0].item<double>()), sigmoid(w[1].item<double>()));
  };
  REQUIRE(std::abs(start({.theta_init = 0.3, .theta_buffer = 0.1}).first - 0.2 / 0.9) <= kRounding);
  REQUIRE(std::abs(start({}).first - 0.5 * 0.25) <= kRounding);
  REQUIRE(std::abs(start({}).second - 0.5 * 0.0625) <= kRounding);
  REQUIRE(std::abs(start({.theta_init = 0.05, .theta_buffer = 0.2}).first - 0.01) <= kRounding);
  ParameterSet parameters(at::kDouble, 1);
  make_scalar_ornstein(ParameterScope(parameters), {.theta_train = false}, inputs());
  REQUIRE_FALSE(parameters.at("weight").trainable);
}

TEST_CASE("spectral: a constant field is a number times 4 pi at wavenumber 0", "[ornstein]") {
  ParameterSet scalar_set(at::kDouble, 1), spectral_set(at::kDouble, 1);
  const ResidualOptions options{.theta_init = 0.3, .lmax = 3};
  const auto scalar = make_scalar_ornstein(ParameterScope(scalar_set), options, inputs());
  const auto spectral = make_spectral_ornstein(ParameterScope(spectral_set), options, inputs());
  at::Tensor means = at::zeros({2, 2, 3, 3, 2}, at::kDouble);
  means.copy_(spectral_set.at("weight").tensor);
  means[1][0][0][0][0] = 4.0 * std::numbers::pi * 0.7;
  spectral_set.assign("weight", means);
  at::Tensor w = scalar_set.at("weight").tensor.detach().clone();
  w[1][0] = 0.7;
  scalar_set.assign("weight", w);
  REQUIRE(max_difference(spectral->forward(fields()), scalar->forward(fields())) <= kRounding);
}

TEST_CASE("without a mean its coefficients do not count", "[ornstein]") {
  ParameterSet parameters(at::kDouble, 1);
  const auto residual =
      make_spectral_ornstein(ParameterScope(parameters), {.use_mean = false}, inputs());
  const at::Tensor before = residual->forward(fields());
  at::Tensor w = parameters.at("weight").tensor.detach().clone();
  w[1].fill_(3.0);
  parameters.assign("weight", w);
  REQUIRE(max_difference(residual->forward(fields()), before) == 0.0);
}

TEST_CASE("the filter works on what the network sees, newest prognostic state only", "[ornstein]") {
  ParameterSet parameters(at::kDouble, 1);
  const ResidualOptions options{.theta_init = 0.2, .truncate = true, .anti_aliasing = false};
  const auto residual = make_spectral_ornstein(ParameterScope(parameters), options, inputs());
  const at::Tensor x = fields(), seen = residual->prepare(x);
  REQUIRE(max_difference(seen.select(1, 0), x.select(1, 0)) == 0.0);
  REQUIRE(max_difference(seen.select(-1, 1), x.select(-1, 1)) == 0.0);
  REQUIRE(max_difference(seen, x) > 0.1);
  // A filter of zero keeps all wavenumbers of the grid: filtering twice changes nothing more.
  parameters.assign("filter", at::zeros({2, 4}, at::kDouble));
  const at::Tensor once = residual->prepare(x);
  REQUIRE(max_difference(residual->prepare(once), once) <= kRounding);
}

TEST_CASE("both have the gradients of finite differences", "[ornstein]") {
  ResidualOptions options{.theta_init = 0.2, .regressors = {"sun"}, .truncate = true};
  for (const bool spectral : {false, true}) {
    ParameterSet parameters(at::kDouble, 1);
    const ParameterScope root(parameters);
    const auto residual = spectral ? make_spectral_ornstein(root, options, inputs())
                                   : make_scalar_ornstein(root, options, inputs());
    const auto function = [&](const std::vector<at::Tensor>& in) {
      return residual->forward(residual->prepare(in[0]));
    };
    REQUIRE(test::gradient_error(function, {random_tensor({1, 2, 1, 40, 3}, 1)}) <=
            test::gradient_tolerance());
  }
}

TEST_CASE("spectral: nodes divided over ranks, in any order, change nothing",
          "[ornstein][parallel]") {
  const ResidualOptions options{.theta_init = 0.2, .regressors = {"sun"}, .truncate = true};
  // Result and gradients of the weighted squares of it; `nodes` says which nodes are here.
  const auto run = [&](const NodeTensors& nodes) {
    ResidualInputs in = inputs();
    in.nodes = nodes;
    ParameterSet parameters(at::kDouble, 1);
    const auto residual = make_spectral_ornstein(ParameterScope(parameters), options, in);
    const at::Tensor x = own_nodes(fields(), nodes, 3).clone().set_requires_grad(true);
    const at::Tensor y = residual->forward(residual->prepare(x));
    (y.square() * own_nodes(random_tensor({40, 1}, 5), nodes, 0)).sum().backward();
    std::vector<at::Tensor> all{y.detach(), x.grad()};
    for (const char* name : {"weight", "filter", "walias"})
      all.push_back(parameters.at(name).tensor.grad());
    return all;
  };
  const std::vector<at::Tensor> whole = run(inputs().nodes);
  std::vector<int32_t> order;
  for (int32_t i = 0; i < 40; ++i)
    order.push_back(7 * i % 40);
  REQUIRE_NOTHROW(parallel::run_as_threads(3, [&](parallel::Communicator& group) {
    NodeTensors nodes = inputs().nodes;
    nodes.share = std::make_shared<const NodeShare>(
        NodeShare{graph::NodePartition::along(order, group.size()), &group});
    nodes.rows = at::tensor(nodes.share->partition.owned(group.rank()), at::kLong);
    const std::vector<at::Tensor> mine = run(nodes);
    for (size_t i = 0; i < mine.size(); ++i) {
      const bool is_field = i < 2;
      if (!is_field) group.all_reduce(mine[i], parallel::Reduction::kSum);
      const at::Tensor expected = is_field ? own_nodes(whole[i], nodes, 3) : whole[i];
      if (max_difference(mine[i], expected) > kRounding * expected.abs().max().item<double>())
        throw Error(concat("rank ", group.rank(), ": tensor ", i, " differs"));
    }
  }));
}

TEST_CASE("unknown regressors and nodes that are no grid are refused", "[ornstein]") {
  ParameterSet parameters(at::kDouble, 1);
  const ParameterScope root(parameters);
  REQUIRE_THROWS_WITH(make_scalar_ornstein(root, {.regressors = {"son"}}, inputs()),
                      ContainsSubstring("'son' is not an input"));
  REQUIRE_THROWS_WITH(make_spectral_ornstein(root, {.grid = SpectralGrid::kOctahedral}, inputs()),
                      ContainsSubstring("model.residual.grid"));
}
