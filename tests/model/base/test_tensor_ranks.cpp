// SPDX-License-Identifier: Apache-2.0
// Layers sliced over ranks give the numbers of one rank: outputs, gradients of input and
// parameters.
#include "model/base/tensor_ranks.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/network/parts.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using parallel::Communicator;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr int64_t kHidden = 11, kChannels = 8, kCopies = 2;
constexpr double kRounding = 1e-12;

struct Net {
  ParameterSet parameters{at::kDouble, 3};
  std::unique_ptr<Processor> processor;

  Net(const BlockOptions& options, Communicator& group) {
    const GraphTensors graph =
        GraphTensors::create(test::random_graph({13, kHidden, 20, 40, 20}, 5),
                             {"edge_length", "edge_dirs"}, at::kDouble);
    parameters.slice_over(group);
    const ParameterScope root(parameters);
    processor = make_processor(root / "processor", root / "edges", options, {},
                               {graph, "hidden", "hidden", 2}, kChannels, /*num_layers=*/2);
    parameters.flatten(at::kCPU);
    uint64_t seed = 90;
    for (const Parameter& p : parameters.entries()) {
      if (!p.trainable) continue;
      const at::Tensor shift = random_tensor(whole_sizes(p), ++seed);
      parameters.assign(p.name, whole_tensor(p, p.tensor.detach()) + 0.3 * shift);
    }
  }
};

// By name: the output, the gradient of the input and those of all parameters, whole.
using Numbers = std::vector<std::pair<std::string, at::Tensor>>;

Numbers numbers_of(const BlockOptions& options, Communicator& group) {
  Net net(options, group);
  const at::Tensor x = random_tensor({kCopies * kHidden, kChannels}, 1).set_requires_grad(true);
  const at::Tensor y = net.processor->forward(x, kCopies);
  (y.square() * random_tensor({kCopies * kHidden, 1}, 2)).sum().backward();
  Numbers numbers{{"the output", y.detach()}, {"the input's gradient", x.grad()}};
  for (const Parameter& p : net.parameters.entries()) {
    if (p.trainable) numbers.emplace_back(p.name, whole_tensor(p, net.parameters.gradient(p)));
  }
  return numbers;
}

void require_one_ranks_numbers(const BlockOptions& options, const std::vector<int>& sizes) {
  const auto alone = parallel::make_single_communicator();
  const Numbers wanted = numbers_of(options, *alone);
  for (const int ranks : sizes) {
    INFO(enum_name(options.kind) << " over " << ranks << " ranks");
    REQUIRE_NOTHROW(parallel::run_as_threads(ranks, [&](Communicator& group) {
      const Numbers got = numbers_of(options, group);
      AIFS_CHECK(got.size() == wanted.size(), got.size(), " tensors for ", wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        const double scale = 1.0 + wanted[i].second.abs().max().item<double>();
        if (max_difference(got[i].second, wanted[i].second) > kRounding * scale)
          throw Error(concat("rank ", group.rank(), ": ", wanted[i].first, " differs"));
      }
    }));
  }
}

}  // namespace

TEST_CASE("slices are balanced, in units, and may be empty", "[tensor_ranks]") {
  const at::Tensor whole = random_tensor({3, 10}, 1);
  REQUIRE(TensorRanks().counts(10) == parallel::Counts{10});
  REQUIRE(Slice().of(whole).is_same(whole));
  REQUIRE_NOTHROW(parallel::run_as_threads(4, [&](Communicator& group) {
    const TensorRanks ranks(group);
    AIFS_CHECK(ranks.counts(10) == (parallel::Counts{3, 3, 2, 2}), "other shares");
    AIFS_CHECK(ranks.counts(10, 2) == (parallel::Counts{4, 2, 2, 2}), "other shares of pairs");
    AIFS_CHECK(ranks.counts(3) == (parallel::Counts{1, 1, 1, 0}), "other shares of few");
    const TensorRanks::Range own = ranks.own(10, 2);
    AIFS_CHECK(at::equal(ranks.slice(1, 10, 2).of(whole), whole.narrow(1, own.begin, own.size)),
               "another slice");
  }));
}

TEST_CASE("sliced GNN blocks give the numbers of whole ones", "[tensor_ranks]") {
  BlockOptions gnn{.kind = BlockKind::kGnn};
  require_one_ranks_numbers(gnn, {2, 3, 9});  // 9: a rank without channels
  gnn.mlp_implementation = MlpImplementation::kSwiglu;
  gnn.mlp_extra_layers = 2;
  gnn.recompute = RecomputePolicy::kMlp;
  require_one_ranks_numbers(gnn, {3});
}

TEST_CASE("sliced GraphTransformer blocks give the numbers of whole ones", "[tensor_ranks]") {
  BlockOptions block{.kind = BlockKind::kGraphTransformer, .heads = 4};
  require_one_ranks_numbers(block, {2, 3, 4});
  block.qk_norm = true;
  block.edge_pre_mlp = true;
  block.recompute = RecomputePolicy::kBlock;
  require_one_ranks_numbers(block, {3});
}

TEST_CASE("sliced Transformer blocks give the numbers of whole ones", "[tensor_ranks]") {
  BlockOptions block{.kind = BlockKind::kTransformer, .heads = 4};
  require_one_ranks_numbers(block, {2, 3, 4});
  block.qk_norm = true;
  block.attention = AttentionBackend::kFlash;
  block.alibi = true;
  block.window = 3;
  block.mlp_implementation = MlpImplementation::kGeglu;
  block.recompute = RecomputePolicy::kFull;
  require_one_ranks_numbers(block, {3});
}

TEST_CASE("fused kernels are refused where MLPs are sliced", "[tensor_ranks]") {
  REQUIRE_NOTHROW(parallel::run_as_threads(2, [](Communicator& group) {
    ParameterSet parameters(at::kFloat, 1);
    parameters.slice_over(group);
    const MlpOptions fused{.in = 4, .hidden = 4, .out = 4, .kernels = KernelChoice::kFused};
    const Mlp whole(ParameterScope(parameters) / "whole", fused);
    std::string message;
    try {
      const Mlp sliced((ParameterScope(parameters) / "sliced").sliced(), fused);
    } catch (const ConfigError& error) {
      message = error.what();
    }
    AIFS_CHECK(message.find("model.kernels") != std::string::npos, "not refused: ", message);
  }));
}
