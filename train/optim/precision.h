// SPDX-License-Identifier: Apache-2.0
// Types of a run. Mixed precision: weights, gradients and moments are fp32, activations and
// products of matrices 16-bit. kPrecisionTable says which operations are which;
// model/base/precision.h decides, from the type of the activations (ParameterSet). Anemoi has
// autocast instead: what its layers leave in fp32 there differs here and there, by less than its
// own 16-bit runs differ among themselves.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "core/enum_names.h"

namespace aifs::train {

enum class Precision { kFp32, kFp64, kTf32, kBf16Mixed, kFp16Mixed };

// The type of weights and of batches, and that of activations.
at::ScalarType weight_type(Precision precision);
at::ScalarType activation_type(Precision precision);

// Describes what is computed in which type under mixed precision. "short" is bf16 or fp16.
struct PrecisionRule {
  const char* operation;
  const char* result;      // "short", "fp32" or "input": the type of the output
  const char* arithmetic;  // of sums within it
};
inline constexpr std::array<PrecisionRule, 14> kPrecisionTable{{
    {"linear layers, matrix products, attention", "short", "fp32"},
    {"activations (GELU, SiLU, ReLU, sigmoid)", "input", "fp32"},
    {"layer norm", "input", "fp32"},
    {"sums of edges at nodes", "input", "fp32"},
    {"sums of latent states (skips within the network)", "input", "fp32"},
    {"trainable features, coordinates, edge attributes", "short", "fp32"},
    {"output of the network before the residual", "fp32", "fp32"},
    {"residual of prognostic variables", "fp32", "fp32"},
    {"bounding layers", "fp32", "fp32"},
    {"advancing inputs in a rollout", "fp32", "fp32"},
    {"losses, scores, smoothers, spectral transforms", "fp64", "fp32, fp64 over nodes"},
    {"accumulated gradients", "fp32", "fp32"},
    {"clipping, optimiser, averages of weights", "fp32", "fp32"},
    {"sums over ranks of losses", "fp64", "fp64"},
}};

// The factor that keeps small fp16 gradients from vanishing: the loss is multiplied by it, the
// gradients are divided by it before they are clipped. It is halved when they overflow (that step
// is left out, but counts), and doubled after so many steps without (PyTorch's GradScaler). 1 and
// constant for other than fp16-mixed.
class LossScale {
 public:
  explicit LossScale(Precision precision) : active_(precision == Precision::kFp16Mixed) {}

  bool active() const { return active_; }
  double value() const { return active_ ? scale_ : 1.0; }
  int64_t good_steps() const { return good_steps_; }
  void restore(double scale, int64_t good_steps);

  // After each step: whether its gradients were finite.
  void update(bool finite);

  static constexpr double kFirst = 65536.0, kGrowth = 2.0, kBackoff = 0.5;
  static constexpr int64_t kInterval = 2000;

 private:
  bool active_;
  double scale_ = kFirst;
  int64_t good_steps_ = 0;
};

constexpr auto enum_table(Precision) {
  using enum Precision;
  return std::to_array<EnumName<Precision>>({{kFp32, "fp32"},
                                             {kFp64, "fp64"},
                                             {kTf32, "tf32"},
                                             {kBf16Mixed, "bf16-mixed"},
                                             {kFp16Mixed, "fp16-mixed"}});
}

}  // namespace aifs::train
