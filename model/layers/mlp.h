// SPDX-License-Identifier: Apache-2.0
// The multi-layer perceptron of Anemoi: linear and activation (extra_layers + 1 times), a last
// linear, and a LayerNorm after it. With a gated implementation each "linear and activation" is
// g(W_g x + b_g) * (W_v x + b_v). Names: mlp.<i>..., layer_norm....
// In a scope with tensor ranks the hidden channels are sliced, input and result are whole.
#pragma once

#include <optional>
#include <vector>

#include "core/enum_names.h"
#include "model/kernels/segment.h"
#include "model/layers/activation.h"
#include "model/layers/fused_mlp.h"
#include "model/layers/layer_norm.h"

namespace aifs::model {

enum class MlpImplementation { kMlp, kGlu, kSwiglu, kGeglu, kReglu };

// Which code runs between the matrix products: LibTorch's operators, or one kernel for each chain
// of row-wise work (model/layers/fused_mlp.h). auto: fused on a GPU where rows have a type it
// knows, and on a CPU in fp32 up to kWidestRowProduct (model/kernels/row_products.h).
enum class KernelChoice { kAuto, kReference, kFused };

// Width of hidden layers: channels * ratio, halves rounded up.
int64_t hidden_width(int64_t channels, double ratio);

struct MlpOptions {
  int64_t in = 0, hidden = 0, out = 0;
  int64_t extra_layers = 1;
  bool layer_norm = true;
  MlpImplementation implementation = MlpImplementation::kMlp;
  Activation activation = Activation::kGelu;  // of plain MLPs; gated ones have their own
  double layer_norm_eps = 1e-5;
  KernelChoice kernels = KernelChoice::kAuto;
};

class Mlp {
 public:
  Mlp() = default;
  // Throws ConfigError if fused kernels are asked for an MLP that has none (gated or sliced ones).
  Mlp(const ParameterScope& scope, const MlpOptions& options);

  // (rows, in) -> (rows, out). Rows may be filled up (model/base/filling.h). If fused, hidden
  // layers may be computed again in the backward pass.
  at::Tensor forward(const at::Tensor& x, Keep hidden = Keep::kSlope) const;
  // Computes this without a norm; the result may be filled up.
  at::Tensor forward_filled(const at::Tensor& x, Keep hidden) const;
  // to + forward(x), without a norm one operation if fused. With `unread` (only if fused) nobody
  // reads the result, and it is not computed.
  at::Tensor forward_added(const at::Tensor& x, const at::Tensor& to, bool unread = false) const;
  // The value of forward([a | b]) without the concatenation; a and b of equal width.
  at::Tensor forward_pair(const at::Tensor& a, const at::Tensor& b) const;
  // The value of forward([x | x]).
  at::Tensor forward_twice(const at::Tensor& x) const;
  // The value of forward([x_target[target] | x_source[source] | e]), (M, out).
  at::Tensor forward_edges(const at::Tensor& x_target, const at::Tensor& x_source,
                           const at::Tensor& e, const EdgeIndexPtr& edges) const;

  // True if rows like these go through fused().
  bool is_fused(const at::Tensor& rows) const;
  // The MLP as one operation; of the plan, the norm is filled in.
  FusedMlpResult fused(FusedMlpPlan plan, const std::vector<at::Tensor>& rows) const;
  // Returns what fused() may be given in place of x_source (FusedMlpPlan::sources_multiplied).
  at::Tensor fused_sources(const at::Tensor& x_source) const;

 private:
  // Applies the first layer's activation to what `first_linear` gives for its linear (or for gate
  // and value), then the rest.
  template <class FirstLinear>
  at::Tensor run(FirstLinear&& first_linear) const;

  struct HiddenLayer {
    Linear linear;  // the value part if gated
    std::optional<Linear> gate;
  };
  bool could_be_fused() const;
  FusedMlpWeights fused_weights(at::ScalarType type) const;

  MlpImplementation implementation_ = MlpImplementation::kMlp;
  Activation activation_ = Activation::kGelu;
  KernelChoice kernels_ = KernelChoice::kAuto;
  TensorRanks ranks_;
  std::vector<HiddenLayer> hidden_;
  Linear last_;
  std::optional<LayerNorm> layer_norm_;
};

constexpr auto enum_table(KernelChoice) {
  using enum KernelChoice;
  return std::to_array<EnumName<KernelChoice>>(
      {{kAuto, "auto"}, {kReference, "reference"}, {kFused, "fused"}});
}

constexpr auto enum_table(MlpImplementation) {
  using enum MlpImplementation;
  return std::to_array<EnumName<MlpImplementation>>(
      {{kMlp, "mlp"}, {kGlu, "glu"}, {kSwiglu, "swiglu"}, {kGeglu, "geglu"}, {kReglu, "reglu"}});
}

}  // namespace aifs::model
