// SPDX-License-Identifier: Apache-2.0
// One sample over many ranks gives the numbers of one rank: outputs, gradients of all parameters.
#include <ATen/ATen.h>

#include "core/check.h"
#include "model/encoder_processor_decoder.h"
#include "parallel/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using graph::HiddenOrder;
using graph::SourceRows;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr int64_t kData = 37, kHidden = 11;  // primes: no number of ranks divides them
constexpr double kRounding = 1e-12;

graph::Graph toy_graph() {
  return test::random_graph({kData, kHidden, 60, 66, 111}, 5);
}

FieldLayout toy_layout() {
  FieldLayout layout;
  layout.num_inputs = 6;
  layout.outputs.names = {"p", "q", "r", "s", "diagnostic"};
  layout.input_prognostic = {2, 3, 4, 5};
  layout.output_prognostic = {0, 1, 2, 3};
  return layout;
}

struct Toy {
  ParameterSet parameters{at::kDouble, 3};
  EncoderProcessorDecoder network;

  explicit Toy(const GraphTensors& graph) : network(parameters, options(), graph, toy_layout()) {
    parameters.flatten(at::kCPU);
    uint64_t seed = 90;
    for (const Parameter& p : parameters.entries()) {
      if (p.trainable) p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.1);
    }
  }
  static ModelOptions options() {
    ModelOptions options;
    options.channels = 16;
    options.layers = 2;
    return options;
  }
  static GraphTensors tensors(const Shard* shard = nullptr) {
    return GraphTensors::create(toy_graph(), options().edge_attributes, at::kDouble, shard);
  }
};

struct Case {
  int ranks;
  HiddenOrder order;
  SourceRows rows;
};

// Output and gradient of sum(weights * output^2) on one rank.
struct Whole {
  at::Tensor x = random_tensor({2, 2, 2, kData, 6}, 1), weights = random_tensor({kData, 1}, 2);
  at::Tensor y, gradients;
  Whole() {
    Toy toy(Toy::tensors());
    y = toy.network.forward(x);
    (y.square() * weights).sum().backward();
    y = y.detach();
    gradients = toy.parameters.flat_gradients();
  }
};

void compare_rank(const Case& c, const Whole& whole, parallel::Communicator& group) {
  const graph::GraphPartition partition = graph::make_partition(toy_graph(), c.ranks, c.order, 2);
  const Shard shard{partition, group, c.rows};
  Toy toy(Toy::tensors(&shard));
  const at::Tensor own = at::tensor(partition.data.owned(group.rank()), at::kLong);
  const at::Tensor y = toy.network.forward(whole.x.index_select(3, own));
  (y.square() * whole.weights.index_select(0, own)).sum().backward();
  const at::Tensor gradients = toy.parameters.flat_gradients();
  group.all_reduce(gradients, parallel::Reduction::kSum);
  if (own.numel() > 0 && max_difference(y, whole.y.index_select(3, own)) > kRounding)
    throw Error(concat("rank ", group.rank(), ": another output"));
  const double scale = whole.gradients.abs().max().item<double>();
  if (max_difference(gradients, whole.gradients) > kRounding * scale)
    throw Error(concat("rank ", group.rank(), ": another gradient"));
}

}  // namespace

TEST_CASE("a sharded sample gives the outputs and gradients of one rank", "[model][parallel]") {
  const Whole whole;
  for (const int ranks : {1, 2, 3, 4, 6, 8, 13}) {  // 13: ranks without hidden nodes
    for (const HiddenOrder order : {HiddenOrder::kLatitude, HiddenOrder::kHilbert}) {
      for (const SourceRows rows : {SourceRows::kHalo, SourceRows::kAll}) {
        INFO(ranks << " ranks");
        REQUIRE_NOTHROW(parallel::run_as_threads(ranks, [&](parallel::Communicator& group) {
          compare_rank({ranks, order, rows}, whole, group);
        }));
      }
    }
  }
}
