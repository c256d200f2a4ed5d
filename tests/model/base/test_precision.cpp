// SPDX-License-Identifier: Apache-2.0
#include "model/base/precision.h"

#include <ATen/ATen.h>

#include "model/network/encoder_processor_decoder.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"
#include "tests/support/toy_layout.h"

using namespace aifs;
using namespace aifs::model;

namespace {

constexpr OpKind kAll[] = {OpKind::kProduct, OpKind::kElementwise, OpKind::kNormalisation,
                           OpKind::kSoftmax, OpKind::kSegmentSum,  OpKind::kOutput};

struct Result {
  at::Tensor output, gradients;
};

// Output and gradients of sum(w * output) of a small network with activations of this type.
Result run_network(at::ScalarType activations) {
  const FieldLayout layout = test::toy_layout();
  ModelOptions options;
  options.channels = 32;
  options.layers = 4;
  ParameterSet parameters(at::kFloat, 3, activations);
  const auto graph = GraphTensors::create(test::random_graph({37, 11, 33, 66, 111}, 5),
                                          options.edge_attributes, at::kFloat);
  const EncoderProcessorDecoder network(parameters, options, graph, layout);
  parameters.flatten(at::kCPU);
  const at::Tensor x = test::random_tensor({1, 2, 1, 37, 6}, 7).to(at::kFloat);
  const at::Tensor y = network.forward(x);
  (y * test::random_tensor(y.sizes(), 8).to(at::kFloat)).sum().backward();
  return {y.detach(), parameters.flat_gradients()};
}

}  // namespace

TEST_CASE("full precision is the same for every operation", "[precision]") {
  for (const OpKind op : kAll) {
    REQUIRE(compute_type(op, at::kFloat) == at::kFloat);
    REQUIRE(compute_type(op, at::kDouble) == at::kDouble);
  }
}

TEST_CASE("bfloat16 is for products and elementwise work, sums and norms are wider",
          "[precision]") {
  for (const OpKind op : kAll) {
    const bool narrow = op == OpKind::kProduct || op == OpKind::kElementwise;
    REQUIRE(compute_type(op, at::kBFloat16) == (narrow ? at::kBFloat16 : at::kFloat));
  }
  const at::Tensor x = at::ones({2});
  REQUIRE(for_op(OpKind::kSoftmax, x).is_same(x));
  REQUIRE(for_op(OpKind::kSoftmax, x.to(at::kBFloat16)).scalar_type() == at::kFloat);
}

TEST_CASE("a sum over many bfloat16 edges does not stall", "[precision]") {
  // 1 + 2^-9 ... in bfloat16 steps of 1 are lost beyond 256.
  const at::Tensor ones = at::ones({1000, 3}, at::kBFloat16);
  const auto edges =
      EdgeIndex::create(at::zeros({1000}, at::kInt), at::zeros({1000}, at::kInt), 1, 1);
  REQUIRE(sum_edges(ones, *edges, true)[0][0].item<float>() == 1000.0f);
}

// Limits as measured for the reference (its bfloat16 against its fp32, a network of this size).
TEST_CASE("a network in bf16-mixed is that in fp32 within bfloat16", "[precision]") {
  const Result full = run_network(at::kFloat), mixed = run_network(at::kBFloat16);
  REQUIRE(mixed.output.scalar_type() == at::kFloat);
  REQUIRE(mixed.gradients.scalar_type() == at::kFloat);
  const double difference = test::max_difference(mixed.output, full.output);
  REQUIRE(difference <= 2e-2);
  REQUIRE(difference > 1e-5);  // it did compute in bfloat16
  const at::Tensor a = mixed.gradients.to(at::kDouble), b = full.gradients.to(at::kDouble);
  REQUIRE(a.dot(b).item<double>() >= 0.999 * (a.norm() * b.norm()).item<double>());
}
