// SPDX-License-Identifier: Apache-2.0
#include "model/layers/trainable_features.h"

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;

namespace {

EdgeTensors six_edges() {
  return make_edge_tensors(test::random_edges("a", 4, "b", 3, 6, 2), 4, 3,
                           {"edge_length", "edge_dirs"}, at::kDouble);
}

}  // namespace

TEST_CASE("node features are sines, cosines, then what is learnt, starting at zero",
          "[trainable_features]") {
  ParameterSet set(at::kFloat, 1);
  const at::Tensor latlon = at::tensor({0.5f, -1.0f, -0.25f, 3.0f}).reshape({2, 2});
  const NodeAttributes nodes(ParameterScope(set), "data", {latlon, {}}, 3);
  const at::Tensor features = nodes.forward();
  REQUIRE(features.sizes() == at::IntArrayRef{2, 7});
  REQUIRE(nodes.width() == 7);
  for (int64_t n = 0; n < 2; ++n) {
    const double lat = latlon[n][0].item<double>(), lon = latlon[n][1].item<double>();
    const double expected[] = {std::sin(lat), std::sin(lon), std::cos(lat), std::cos(lon), 0, 0, 0};
    for (int64_t c = 0; c < 7; ++c)
      REQUIRE(features[n][c].item<double>() == Approx(expected[c]).epsilon(1e-6));
  }
  REQUIRE_FALSE(set.at("latlons_data").trainable);
  REQUIRE(set.at("trainable_tensors.data.trainable").tensor.sizes() == at::IntArrayRef{2, 3});
}

TEST_CASE("edge features are attributes, then what is learnt, starting at zero",
          "[trainable_features]") {
  const auto edges = six_edges();
  ParameterSet set(at::kDouble, 1);
  const EdgeFeatures features(ParameterScope(set), edges, 2);
  REQUIRE(features.width() == 5);
  REQUIRE(at::equal(features.forward().narrow(1, 0, 3), edges.attributes));
  REQUIRE(features.forward().narrow(1, 3, 2).abs().max().item<double>() == 0.0);
  REQUIRE(set.at("trainable_layout_version").tensor.item<int64_t>() == 1);
  set.flatten(at::kCPU);
  const at::Tensor learnt = test::random_tensor({6, 2}, 3);
  set.assign("trainable.trainable", learnt);
  REQUIRE(at::equal(features.forward().narrow(1, 3, 2), learnt));
  features.forward().sum().backward();
  REQUIRE((set.gradient(set.at("trainable.trainable")) == 1).all().item<bool>());
}

TEST_CASE("learnt features get the same gradient whether they have one already or not",
          "[trainable_features]") {
  const auto edges = six_edges();
  ParameterSet set(at::kDouble, 1);
  const EdgeFeatures features(ParameterScope(set), edges, 2);
  const at::Tensor learnt = set.at("trainable.trainable").tensor,
                   g = test::random_tensor({6, 5}, 4);
  features.forward().backward(g);
  REQUIRE(at::equal(learnt.grad(), g.narrow(1, 3, 2)));
  features.forward(/*filled=*/true).backward(g);  // nothing is filled up on a CPU
  REQUIRE(at::equal(learnt.grad(), 2.0 * g.narrow(1, 3, 2)));
}

TEST_CASE("without learnt features there is no parameter", "[trainable_features]") {
  ParameterSet set(at::kFloat, 1);
  const NodeAttributes nodes(ParameterScope(set), "hidden", {at::zeros({2, 2}), {}}, 0);
  REQUIRE(nodes.width() == 4);
  REQUIRE(set.num_trainable() == 0);
}
