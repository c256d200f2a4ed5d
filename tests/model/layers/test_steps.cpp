// SPDX-License-Identifier: Apache-2.0
#include "model/layers/steps.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs::model;
using aifs::test::max_difference;
using aifs::test::random_tensor;

namespace {

constexpr auto kPolicies = {RecomputePolicy::kNone, RecomputePolicy::kMlp, RecomputePolicy::kBlock,
                            RecomputePolicy::kFull};

// Five layers on two states, that count how often they ran.
struct Layers {
  std::vector<Step> steps;
  std::vector<at::Tensor> weights;
  std::shared_ptr<int> runs = std::make_shared<int>(0);

  Layers() {
    for (uint64_t i = 0; i < 5; ++i) {
      weights.push_back(random_tensor({3, 3}, 10 + i).set_requires_grad(true));
      steps.push_back([w = weights.back(), count = runs](const TensorList& in) -> TensorList {
        ++*count;
        return {at::tanh(at::mm(in[0], w)) + in[1], in[1] + in[0] * in[2]};
      });
    }
  }
};

}  // namespace

TEST_CASE("steps fall into pieces that run again", "[steps]") {
  const auto groups = [](int64_t steps, const StepsOptions& options) {
    const StepGroups g = step_groups(steps, options);
    return std::vector<int64_t>{g.size, g.count, g.offload};
  };
  using Numbers = std::vector<int64_t>;
  REQUIRE(groups(16, {RecomputePolicy::kFull, 8, 7}) == Numbers{2, 8, 7});
  REQUIRE(groups(16, {RecomputePolicy::kFull, 7, 9}) == Numbers{3, 6, 5});  // the last one stays
  REQUIRE(groups(16, {RecomputePolicy::kBlock, 8, 3}) == Numbers{1, 16, 3});
  REQUIRE(groups(0, {RecomputePolicy::kFull, 4, 2}) == Numbers{1, 0, 0});  // a stage without layers
  REQUIRE(groups(2, {RecomputePolicy::kFull, 4, 1}) == Numbers{1, 2, 1});
}

TEST_CASE("recomputation changes neither results nor gradients, only how often layers run",
          "[steps]") {
  const Layers plain;
  const auto inputs = [] {
    TensorList list;
    for (uint64_t i = 0; i < 3; ++i)
      list.push_back(random_tensor({4, 3}, i + 1).set_requires_grad(true));
    return list;
  };
  const TensorList expected_in = inputs();
  const TensorList expected =
      run_steps(plain.steps, {}, {expected_in[0], expected_in[1]}, {expected_in[2]});
  (expected[0] * expected[1]).sum().backward();
  REQUIRE(*plain.runs == 5);
  for (const RecomputePolicy policy : kPolicies) {
    for (const int64_t groups : {1, 2, 5, 9}) {
      INFO(aifs::enum_name(policy) << " in " << groups << " groups");
      const Layers layers;
      const TensorList in = inputs();
      const TensorList out = run_steps(layers.steps, {policy, groups}, {in[0], in[1]}, {in[2]});
      (out[0] * out[1]).sum().backward();
      const bool twice = policy == RecomputePolicy::kBlock || policy == RecomputePolicy::kFull;
      REQUIRE(*layers.runs == (twice ? 10 : 5));
      REQUIRE(max_difference(out[0], expected[0]) == 0.0);
      // An input of all layers collects its gradient in another order.
      for (size_t i = 0; i < in.size(); ++i)
        REQUIRE(max_difference(in[i].grad(), expected_in[i].grad()) <= 1e-13);
      for (size_t i = 0; i < layers.weights.size(); ++i)
        REQUIRE(max_difference(layers.weights[i].grad(), plain.weights[i].grad()) == 0.0);
    }
  }
}

TEST_CASE("states that a stash keeps change nothing", "[steps]") {
  for (const StepsOptions& options : std::vector<StepsOptions>{{RecomputePolicy::kBlock, 1, 2},
                                                               {RecomputePolicy::kBlock, 1, 9},
                                                               {RecomputePolicy::kFull, 3, 1}}) {
    const auto run = [&](HostStash* stash) {
      const Layers layers;
      TensorList in;
      for (uint64_t i = 0; i < 3; ++i)
        in.push_back(random_tensor({4, 3}, i + 1).set_requires_grad(true));
      const TensorList out = run_steps(layers.steps, stash ? options : StepsOptions{options.policy},
                                       {in[0], in[1]}, {in[2]}, stash);
      (out[0] * out[1]).sum().backward();
      REQUIRE(*layers.runs == 10);
      return at::cat({in[0].grad(), in[1].grad(), layers.weights[0].grad()});
    };
    HostStash stash;
    const at::Tensor expected = run(nullptr);
    for (int step = 0; step < 2; ++step)
      REQUIRE(max_difference(run(&stash), expected) <= 1e-13);
    REQUIRE(stash.host_bytes() == 0);  // tensors of the CPU stay
  }
}

TEST_CASE("the end of a part is not computed where nobody reads it", "[steps]") {
  const at::Tensor weight = random_tensor({3, 3}, 4).set_requires_grad(true);
  int runs = 0;
  const Piece change = [&](const TensorList& in) -> TensorList {
    ++runs;
    return {at::mm(in[0], weight).tanh()};
  };
  const Step step = [&](const TensorList& in) {
    return maybe_recomputed(true, change, in, {.width = 1, .ends_part = true});
  };
  const at::Tensor x = random_tensor({4, 3}, 1).set_requires_grad(true);
  for (const auto& [policy, expected] :
       {std::pair{RecomputePolicy::kBlock, 6}, std::pair{RecomputePolicy::kFull, 8}}) {
    runs = 0;
    const at::Tensor out = run_steps({step, step, step}, {policy}, {x}, {})[0];
    REQUIRE(runs == 3);
    out.sum().backward();
    REQUIRE(runs == expected);  // kFull: once more, but for the last step
  }
  const at::Tensor of_both = x.grad().clone();
  x.mutable_grad().zero_();
  run_steps({change, change, change}, {}, {x}, {})[0].sum().backward();
  REQUIRE(max_difference(of_both, 2.0 * x.grad()) <= 1e-15);
}

TEST_CASE("undefined inputs stay undefined when a piece is recomputed", "[steps]") {
  const Piece piece = [](const TensorList& in) -> TensorList {
    REQUIRE_FALSE(in[0].defined());
    return {in[1] * 2.0};
  };
  const at::Tensor x = random_tensor({3}, 1).set_requires_grad(true);
  maybe_recomputed(true, piece, {at::Tensor(), x})[0].sum().backward();
  REQUIRE(max_difference(x.grad(), at::full({3}, 2.0, at::kDouble)) == 0.0);
}

TEST_CASE("chunks of targets put together are all targets", "[steps]") {
  const auto index = aifs::test::random_edge_index(9, 7, 50, 5);
  const at::Tensor targets = random_tensor({7, 3}, 1), edges = random_tensor({50, 3}, 2);
  const at::Tensor factor = random_tensor({3}, 3);
  const auto body = [](const EdgeIndexPtr& chunk) -> Piece {
    return [chunk](const TensorList& in) -> TensorList {
      return {in[0] + sum_at_targets(in[1], chunk) * in[2]};
    };
  };
  const at::Tensor expected = targets + sum_at_targets(edges, index) * factor;
  for (const int64_t count : {1, 2, 7}) {
    for (const bool again : {false, true}) {
      const at::Tensor rows = edges.clone().set_requires_grad(true);
      const at::Tensor out =
          over_chunks(cut_by_targets(index, count), body, again, targets, rows, {factor});
      REQUIRE(max_difference(out, expected) == 0.0);
      out.sum().backward();
      REQUIRE(max_difference(rows.grad(), factor.expand({50, 3})) == 0.0);
    }
  }
}

TEST_CASE("repeated rows are copies one after another", "[steps]") {
  const at::Tensor x = random_tensor({2, 3}, 1);
  REQUIRE(max_difference(repeat_rows(x, 3), at::cat({x, x, x})) == 0.0);
  REQUIRE(repeat_rows(x, 1).is_same(x));
}
