// SPDX-License-Identifier: Apache-2.0
// Every loss of nodes that are divided over ranks is that of one rank, and so are its gradients.
#include "train/loss/node_slice.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "graph/nodes/gaussian_grid.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"
#include "train/loss/loss_setup.h"

using namespace aifs;
using namespace aifs::train;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-12;  // of sums over some hundred nodes in another order
const parallel::Counts kCounts{31, 100, 77};

graph::NodeSet octahedral_nodes() {
  constexpr double kDegrees = 57.29577951308232;
  const auto points = graph::gaussian_coordinates(graph::parse_gaussian_grid("o4"));
  graph::NodeSet nodes;
  nodes.name = "data";
  for (size_t i = 0; i < points.lat_deg.size(); ++i) {
    nodes.lat_rad.push_back(static_cast<float>(points.lat_deg[i] / kDegrees));
    nodes.lon_rad.push_back(static_cast<float>(points.lon_deg[i] / kDegrees));
    nodes.attributes["area_weight"].values.push_back(std::cos(nodes.lat_rad.back()));
  }
  return nodes;
}

LossTermOptions term_of(const std::string& kind) {
  LossTermOptions term;
  term.kind.choose(kind);
  const bool waves = term.kind->is_of_waves();
  term.scalers = {waves ? "spectral" : "node_weights", "general_variable", "nan_mask_weights"};
  if (waves) term.scalers.pop_back();
  return term;
}

// All that treat nodes differently: each on its own, whole waves, neighbours, norms, scales.
std::vector<LossTermOptions> all_terms() {
  std::vector<LossTermOptions> terms;
  for (const char* kind : {"mse", "rmse", "crps", "energy_score", "graph_energy_score",
                           "graph_edge_crps", "spectral_amse", "spectral_crps"}) {
    terms.push_back(term_of(kind));
  }
  LossTermOptions scales = term_of("mse");
  scales.scales.num_scales = 2;
  scales.scales.base_neighbours = 4;
  scales.scales.base_sigma = 0.2;
  scales.scales.weights = {0.2, 0.3, 0.5};
  terms.push_back(scales);
  return terms;
}

struct Sample {
  data::VariableTable variables{{"f", "t_500", "tp", "u_850"}, {{"f"}, {"tp"}}};
  data::Statistics statistics{{0, 0, 0, 0}, {1, 6, 1, 8}, {0, 0, 0, 0}, {1, 1, 1, 1}};
  std::map<int64_t, data::Statistics> tendencies;
  graph::NodeSet nodes = octahedral_nodes();
  at::Tensor prediction, target, mask;

  Sample() {
    const int64_t n = nodes.num_nodes();
    prediction = random_tensor({2, 1, 3, n, 3}, 1).to(at::kDouble);
    target = random_tensor({2, 1, 1, n, 3}, 2).to(at::kDouble);
    mask = (random_tensor({2, n, 4}, 3) > 1.0).to(at::kByte);
  }
  LossPtr build(const LossTermOptions& term) const {
    LossOptions options;
    options.terms = {term};
    return build_loss(options, {.variables = variables,
                                .statistics = statistics,
                                .tendencies = tendencies,
                                .nodes = nodes,
                                .grid_name = "o4",
                                .timestep_s = 21600,
                                .dtype = at::kDouble});
  }
};

struct Result {
  at::Tensor value, gradient;
};

// Returns the result of the nodes of a slice.
Result run(const Loss& loss, const Sample& sample, const NodeSlice& slice, int64_t size) {
  const at::Tensor own =
      sample.prediction.narrow(kGrid, slice.first, size).clone().set_requires_grad(true);
  const LossCall call =
      call_of_batch(slice, sample.mask.narrow(1, slice.first, size), sample.variables, own);
  const at::Tensor value =
      loss(own, sample.target.narrow(kGrid, slice.first, size).contiguous(), call);
  value.backward();
  return {value.detach(), own.grad()};
}

void compare(const Result& ours, const Result& whole, const NodeSlice& slice, int64_t size,
             const std::string& name) {
  const auto limit = [](const at::Tensor& x) { return kRounding * x.abs().max().item<double>(); };
  if (max_difference(ours.value, whole.value) > limit(whole.value))
    throw Error(name + ": another value");
  const at::Tensor expected = whole.gradient.narrow(kGrid, slice.first, size);
  if (max_difference(ours.gradient, expected) > limit(whole.gradient))
    throw Error(name + ": another gradient");
}

}  // namespace

TEST_CASE("losses of nodes over three ranks are those of one rank, with their gradients",
          "[node_slice][parallel]") {
  const Sample sample;
  const int64_t total = sample.nodes.num_nodes();
  REQUIRE(kCounts[0] + kCounts[1] + kCounts[2] == total);
  for (const LossTermOptions& term : all_terms()) {
    const std::string name =
        concat(term.kind.name(), term.scales.weights.empty() ? "" : " of scales");
    INFO(name);
    const LossPtr loss = sample.build(term);
    const Result whole = run(*loss, sample, {}, total);
    REQUIRE(whole.gradient.abs().max().item<double>() > 0.0);
    REQUIRE_NOTHROW(parallel::run_as_threads(3, [&](parallel::Communicator& group) {
      const NodeSlice slice = slice_of_group(kCounts, group);
      const int64_t size = kCounts[static_cast<size_t>(group.rank())];
      compare(run(*loss, sample, slice, size), whole, slice, size, name);
    }));
  }
}

TEST_CASE("one rank has all nodes and sends nothing", "[node_slice]") {
  const auto world = parallel::make_single_communicator();
  const NodeSlice slice = slice_of_group({7}, *world);
  REQUIRE((slice.first == 0 && slice.total == 7));
  REQUIRE_FALSE(slice.reduce);
  REQUIRE_FALSE(slice.collect);
}
