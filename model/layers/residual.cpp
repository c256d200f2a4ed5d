// SPDX-License-Identifier: Apache-2.0
#include "model/layers/residual.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/layers/ornstein.h"
#include "model/nodes/local_matrix.h"
#include "model/nodes/matrix_file.h"

namespace aifs::model {

namespace {

class SkipResidual : public Residual {
 public:
  SkipResidual(const ParameterScope& scope, const ResidualOptions& options,
               const ResidualInputs& inputs)
      : step_(options.step < 0 ? inputs.times_in + options.step : options.step),
        prognostic_(constant_indices(scope, inputs.input_prognostic)) {
    if (step_ < 0 || step_ >= inputs.times_in) {
      throw ConfigError(inputs.path + ".step", concat("is ", options.step, ", there are ",
                                                      inputs.times_in, " input times"));
    }
  }
  at::Tensor forward(const at::Tensor& x) const override {
    return x.narrow(1, step_, 1).index_select(-1, prognostic_);
  }
  std::optional<int64_t> input_time() const override { return step_; }

 private:
  int64_t step_;
  at::Tensor prognostic_;
};

class TruncatedResidual : public Residual {
 public:
  TruncatedResidual(const ParameterScope& scope, const ResidualInputs& inputs)
      : prognostic_(constant_indices(scope, inputs.input_prognostic)) {
    const NodeShare* fine = inputs.nodes.share.get();
    std::optional<NodeShare> coarse;  // over the same ranks, evenly
    if (fine) {
      const int64_t num_coarse = inputs.down.index->num_targets;
      coarse = {graph::NodePartition::contiguous(num_coarse, fine->group->size()), fine->group};
    }
    const NodeShare* shared = coarse ? &*coarse : nullptr;
    down_ = LocalMatrix(scope, inputs.down, fine, shared);
    up_ = LocalMatrix(scope, inputs.up, shared, fine);
  }
  at::Tensor forward(const at::Tensor& x) const override {
    const at::Tensor newest = x.narrow(1, x.size(1) - 1, 1).index_select(-1, prognostic_);
    return up_.product(down_.product(newest));
  }

 private:
  at::Tensor prognostic_;
  LocalMatrix down_, up_;
};

// The matrices that are given, or those of the options.
ResidualInputs with_matrices(const ResidualOptions& options, const ResidualInputs& inputs) {
  if (inputs.down.defined() && inputs.up.defined()) return inputs;
  const Truncation truncation = truncation_of(options, inputs.nodes.latlon_rad, inputs.path);
  ResidualInputs complete = inputs;
  complete.down = truncation.down;
  complete.up = truncation.up;
  return complete;
}

}  // namespace

Truncation truncation_of(const ResidualOptions& options, const at::Tensor& latlon_rad,
                         const std::string& path) {
  if (!options.truncation_down.empty()) {
    const int64_t cells = latlon_rad.size(0);
    const SparseMatrix down =
        read_matrix(options.truncation_down, -1, cells, path + ".truncation_down");
    return {down, read_matrix(options.truncation_up, cells, down.index->num_targets,
                              path + ".truncation_up")};
  }
  try {
    return make_truncation(latlon_rad, coarse_grid(options.truncation_grid),
                           options.truncation_neighbours, options.truncation_sigma);
  } catch (const Error& error) {
    throw ConfigError(path + ".truncation_grid", error.what(), error.hint());
  }
}

std::unique_ptr<Residual> make_residual(const ParameterScope& scope, const ResidualOptions& options,
                                        const ResidualInputs& inputs) {
  switch (options.kind) {
    case ResidualKind::kNone:
      return nullptr;
    case ResidualKind::kSkip:
      return std::make_unique<SkipResidual>(scope, options, inputs);
    case ResidualKind::kTruncated:
      return std::make_unique<TruncatedResidual>(scope, with_matrices(options, inputs));
    case ResidualKind::kScalarOrnstein:
      return make_scalar_ornstein(scope, options, inputs);
    case ResidualKind::kSpectralOrnstein:
      return make_spectral_ornstein(scope, options, inputs);
  }
  return nullptr;
}

}  // namespace aifs::model
