// SPDX-License-Identifier: Apache-2.0
#include "model/layers/point_wise.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs::model;
using aifs::test::max_difference;
using aifs::test::random_tensor;

namespace {

constexpr double kRounding = 1e-13;

at::Tensor linear(const ParameterSet& p, const std::string& name, const at::Tensor& x) {
  return at::linear(x, p.at(name + ".weight").tensor, p.at(name + ".bias").tensor);
}
at::Tensor norm(const ParameterSet& p, const std::string& name, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, p.at(name + ".weight").tensor,
                        p.at(name + ".bias").tensor);
}

}  // namespace

TEST_CASE("columns go through linear maps, norms and activations, without a residual",
          "[point_wise]") {
  for (const int64_t hidden : {6, 4}) {
    ParameterSet parameters(at::kDouble, 1);
    const ParameterScope root(parameters);
    const PointWiseOptions options{.channels = 4, .hidden = hidden};
    const PointWiseEncoder encoder(root / "e", options, 3);
    const PointWiseProcessor processor(root / "p", options, 1);
    const PointWiseDecoder decoder(root / "d", options, 4, 2);
    const at::Tensor x = random_tensor({5, 3}, 1);
    const Encoded encoded = encoder.forward(x, {}, 1);
    REQUIRE(encoded.data.is_same(x));
    REQUIRE(max_difference(encoded.latent, linear(parameters, "e.emb_nodes_src", x)) <= kRounding);
    at::Tensor h = at::gelu(
        norm(parameters, "p.proc.0.mlp.1", linear(parameters, "p.proc.0.mlp.0", encoded.latent)));
    REQUIRE(parameters.contains("p.proc.0.mlp.3.weight") == (hidden != 4));
    if (hidden != 4) h = linear(parameters, "p.proc.0.mlp.3", h);
    REQUIRE(max_difference(processor.forward(encoded.latent, 1), h) <= kRounding);
    const at::Tensor y = linear(parameters, "d.node_data_extractor.1",
                                norm(parameters, "d.node_data_extractor.0", h));
    REQUIRE(max_difference(decoder.forward(h, x, 1), y) <= kRounding);
    const auto function = [&](const std::vector<at::Tensor>& in) {
      return decoder.forward(processor.forward(encoder.forward(in[0], {}, 1).latent, 1), in[0], 1);
    };
    REQUIRE(aifs::test::gradient_error(function, {x}) <= aifs::test::gradient_tolerance());
  }
}
