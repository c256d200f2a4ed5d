// SPDX-License-Identifier: Apache-2.0
// One sample over many ranks gives the numbers of one rank, for every family: outputs, gradients of
// all parameters. Ranks are threads and, under mpirun, processes.
#include <ATen/ATen.h>

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "parallel/launch/runtime.h"
#include "tests/support/catch.h"
#include "tests/support/network_families.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using graph::HiddenOrder;
using graph::SourceRows;
using test::max_difference;
using test::NetworkFamily;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-12;
#ifdef AIFS_HAVE_MPI                  // as processes there are 2 and 3
const std::vector<int> kThreads{13};  // ranks without hidden nodes
#else
const std::vector<int> kThreads{2, 3, 13};
#endif

struct Toy {
  ParameterSet parameters{at::kDouble, 3};
  EncoderProcessorDecoder network;

  Toy(const NetworkFamily& family, const Shard* shard = nullptr)
      : network(parameters, family.plan(),
                GraphTensors::create(NetworkFamily::graph(), ModelOptions().edge_attributes,
                                     at::kDouble, shard)) {
    parameters.flatten(at::kCPU);
    uint64_t seed = 90;
    for (const Parameter& p : parameters.entries()) {
      if (p.trainable) p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.1);
    }
  }
};

// Outputs and gradient of sum(weights * output^2) on one rank.
struct Whole {
  std::vector<at::Tensor> x, weights, y;
  at::Tensor gradients;
  explicit Whole(const NetworkFamily& family) : x(family.inputs()) {
    const Toy toy(family);
    y = toy.network.forward(x, {.noise = family.noise(toy.network, 0)});
    at::Tensor total = at::zeros({}, at::kDouble);
    for (at::Tensor& field : y) {
      total = total +
              (field.square() * weights.emplace_back(random_tensor({field.size(3), 1}, 2))).sum();
      field = field.detach();
    }
    total.backward();
    gradients = toy.parameters.flat_gradients();
  }
};

struct Layout {
  HiddenOrder order;
  SourceRows rows;
  AttentionSharing attention;
};

void compare_rank(const NetworkFamily& family, const Layout& layout, const Whole& whole,
                  parallel::Communicator& group) {
  const graph::GraphPartition partition =
      graph::make_partition(NetworkFamily::graph(), group.size(), layout.order, 2);
  const Shard shard{partition, group, layout.rows, layout.attention};
  const Toy toy(family, &shard);
  std::vector<at::Tensor> own, x;
  for (const char* dataset : {"data", "other"})
    own.push_back(at::tensor(partition.of(dataset).owned(group.rank()), at::kLong));
  for (size_t i = 0; i < whole.x.size(); ++i)
    x.push_back(whole.x[i].index_select(3, own[i]));
  const std::vector<at::Tensor> y = toy.network.forward(x, {.noise = family.noise(toy.network, 0)});
  at::Tensor total = at::zeros({}, at::kDouble);
  for (size_t i = 0; i < y.size(); ++i)
    total = total + (y[i].square() * whole.weights[i].index_select(0, own[i])).sum();
  total.backward();
  const at::Tensor gradients = toy.parameters.flat_gradients();
  group.all_reduce(gradients, parallel::Reduction::kSum);
  for (size_t i = 0; i < y.size(); ++i) {
    const double size = whole.y[i].abs().max().item<double>();
    if (own[i].numel() > 0 &&
        max_difference(y[i], whole.y[i].index_select(3, own[i])) > kRounding * size)
      throw Error(concat("rank ", group.rank(), ": another output"));
  }
  const double scale = whole.gradients.abs().max().item<double>();
  if (max_difference(gradients, whole.gradients) > kRounding * scale)
    throw Error(concat("rank ", group.rank(), ": another gradient"));
}

}  // namespace

TEST_CASE("a sharded sample gives the outputs and gradients of one rank", "[model][parallel]") {
  parallel::Runtime runtime(60.0);
  const std::vector<Layout> layouts{
      {HiddenOrder::kHilbert, SourceRows::kHalo, AttentionSharing::kAuto},
      {HiddenOrder::kLatitude, SourceRows::kAll, AttentionSharing::kHeads},
      {HiddenOrder::kMesh, SourceRows::kHalo, AttentionSharing::kSequence}};
  for (const NetworkFamily& family : test::network_families()) {
    const Whole whole(family);
    for (const Layout& layout : layouts) {
      INFO(family.name << ", order " << enum_name(layout.order));
      const auto compare = [&](parallel::Communicator& group) {
        compare_rank(family, layout, whole, group);
      };
      REQUIRE_NOTHROW(compare(runtime.world()));
      if (runtime.size() > 1) continue;
      for (const int ranks : kThreads) {
        INFO(ranks << " threads");
        REQUIRE_NOTHROW(parallel::run_as_threads(ranks, compare));
      }
    }
  }
}
