// SPDX-License-Identifier: Apache-2.0
#include "model/layers/ornstein.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"
#include "model/kernels/spectral_transform.h"
#include "model/nodes/node_rows.h"

namespace aifs::model {

namespace {

std::vector<int64_t> regressor_columns(const ResidualOptions& options,
                                       const ResidualInputs& inputs) {
  std::vector<int64_t> list;
  for (const std::string& name : options.regressors) {
    const auto found = std::find(inputs.input_names.begin(), inputs.input_names.end(), name);
    if (found == inputs.input_names.end()) {
      throw ConfigError(inputs.path + ".regressors", concat("'", name, "' is not an input"),
                        nearest_names(name, inputs.input_names));
    }
    list.push_back(found - inputs.input_names.begin());
  }
  return list;
}

// Logits of the initial pull towards the mean, per prognostic variable.
at::Tensor initial_logits(const ResidualOptions& options, const ResidualInputs& inputs) {
  const size_t count = inputs.input_prognostic.size();
  const bool known = inputs.stdev.size() == count && inputs.stdev_tendency.size() == count;
  at::Tensor logits = at::empty({static_cast<int64_t>(count)}, at::kDouble);
  for (size_t i = 0; i < count; ++i) {
    double theta = options.theta_init;
    if (theta == 0.0 && known) {
      theta = 0.5 * std::pow(inputs.stdev_tendency[i] / inputs.stdev[i], 2);
    }
    theta = (theta - options.theta_buffer) / (1.0 - options.theta_buffer);
    if (theta >= 1.0) theta = 0.99;
    if (theta <= 0.0) theta = 0.01;
    logits[static_cast<int64_t>(i)] = std::log(theta / (1.0 - theta));
  }
  return logits;
}

// A tensor that starts like this.
at::Tensor learnt(const ParameterScope& scope, const std::string& name, const at::Tensor& start) {
  const at::Tensor tensor = scope.add(name, start.sizes(), Init::zeros());
  scope.set().assign(scope.name(name), start);
  return tensor;
}

// gain * state + mean + sum of weights times regressors; w0, w1, w2... broadcast against state.
at::Tensor ornstein(const at::Tensor& newest, const at::Tensor& state, const at::Tensor& regressors,
                    double buffer, const std::vector<at::Tensor>& w) {
  const at::Tensor gain = (1.0 - buffer) - at::sigmoid(w[0]) * (1.0 - buffer);
  at::Tensor out = gain * state + w[1];
  for (int64_t i = 0; i < regressors.size(0); ++i) {
    const at::Tensor f = newest.index_select(-1, regressors.narrow(0, i, 1));
    out = out + w[static_cast<size_t>(2 + i)] * f;
  }
  return out;
}

class ScalarOrnsteinResidual : public Residual {
 public:
  ScalarOrnsteinResidual(const ParameterScope& scope, const ResidualOptions& options,
                         const ResidualInputs& inputs)
      : buffer_(options.theta_buffer),
        prognostic_(constant_indices(scope, inputs.input_prognostic)),
        regressors_(constant_indices(scope, regressor_columns(options, inputs))) {
    const int64_t rows = 2 + regressors_.size(0), width = prognostic_.size(0);
    at::Tensor start = at::zeros({rows, width}, at::kDouble);
    start[0].copy_(initial_logits(options, inputs));
    start = start.to(scope.dtype());
    if (options.theta_train) {
      weight_ = learnt(scope.on_last_stage(), "weight", start);
    } else {
      weight_ = scope.add_buffer("weight", start);
    }
  }
  at::Tensor forward(const at::Tensor& x) const override {
    const at::Tensor newest = x.narrow(1, x.size(1) - 1, 1);
    return ornstein(newest, newest.index_select(-1, prognostic_), regressors_, buffer_,
                    weight_.unbind(0));
  }

 private:
  double buffer_;
  at::Tensor prognostic_, regressors_, weight_;
};

// -------------------------------------------------------------------------------- spectral ---

// Lengths of the rings of the data grid.
std::vector<int64_t> ring_lengths(SpectralGrid grid, const ResidualInputs& inputs) {
  const at::Tensor latitudes = inputs.nodes.latlon_rad.select(1, 0).contiguous().cpu();
  const int64_t nodes = latitudes.size(0);
  const int64_t rings = std::get<0>(at::_unique(latitudes)).size(0);
  std::vector<int64_t> lengths(static_cast<size_t>(rings), nodes / rings);
  if (grid == SpectralGrid::kOctahedral) {
    for (int64_t r = 0; r < rings; ++r)
      lengths[static_cast<size_t>(r)] = 16 + 4 * (std::min(r, rings - 1 - r) + 1);
  }
  int64_t total = 0;
  const auto at = latitudes.accessor<float, 1>();
  bool in_rings = true;
  for (const int64_t length : lengths) {
    for (int64_t i = total; i < std::min(total + length, nodes); ++i)
      in_rings = in_rings && at[i] == at[total] && (i == 0 || at[i] <= at[i - 1]);
    total += length;
  }
  if (total != nodes || !in_rings) {
    throw ConfigError(inputs.path + ".grid",
                      concat("the data nodes are not the rings of a grid of this kind: ", nodes,
                             " nodes on ", rings, " latitudes"),
                      "spectral_ornstein needs a whole octahedral or regular grid");
  }
  return lengths;
}

class SpectralOrnsteinResidual : public Residual {
 public:
  SpectralOrnsteinResidual(const ParameterScope& scope, const ResidualOptions& options,
                           const ResidualInputs& inputs)
      : SpectralOrnsteinResidual(scope, options, inputs, ring_lengths(options.grid, inputs)) {}

  bool changes_input() const override { return truncate_; }
  // The filtered state is what the whole network sees.
  at::Tensor prepare(const at::Tensor& x) const override {
    if (!truncate_) return x;
    const int64_t older = x.size(1) - 1;
    const at::Tensor newest = x.narrow(1, older, 1);
    const at::Tensor smooth =
        newest.index_copy(-1, prognostic_, filtered(newest.index_select(-1, prognostic_)));
    return older == 0 ? smooth : at::cat({x.narrow(1, 0, older), smooth}, 1);
  }

  at::Tensor forward(const at::Tensor& x) const override {
    const at::Tensor newest = x.narrow(1, x.size(1) - 1, 1);
    std::vector<at::Tensor> fields;  // (N, P) each
    for (const at::Tensor& row : at::unbind(synthesise(weight_ * mean_mask_), 0))
      fields.push_back(row.transpose(0, 1));
    return ornstein(newest, newest.index_select(-1, prognostic_), regressors_, buffer_, fields);
  }

 private:
  SpectralOrnsteinResidual(const ParameterScope& scope, const ResidualOptions& options,
                           const ResidualInputs& inputs, const std::vector<int64_t>& lengths)
      : buffer_(options.theta_buffer),
        truncate_(options.truncate),
        anti_aliasing_(options.anti_aliasing),
        coarse_(lengths, options.lmax - 1),
        full_(lengths, static_cast<int64_t>(lengths.size()) - 1),
        nodes_(inputs.nodes),
        prognostic_(constant_indices(scope, inputs.input_prognostic)),
        regressors_(constant_indices(scope, regressor_columns(options, inputs))) {
    const int64_t rows = 2 + regressors_.size(0), width = prognostic_.size(0), l = options.lmax;
    const at::Tensor start = at::zeros({rows, width, l, l, 2}, scope.dtype());
    start.select(0, 0).select(1, 0).select(1, 0).select(1, 0).copy_(
        4.0 * std::numbers::pi * initial_logits(options, inputs));
    weight_ = learnt(scope.on_last_stage(), "weight", start);
    const at::Tensor mask = at::ones_like(start);
    if (!options.use_mean) mask.select(0, 1).zero_();
    mean_mask_ = scope.add_buffer("muzero", mask);
    if (!options.truncate) return;
    const auto rings = static_cast<int64_t>(lengths.size());
    const double kept = std::max(options.theta_init, 0.01);
    const double each = std::sqrt(kept / ((0.5 - kept) * static_cast<double>(rings)));
    filter_ = learnt(scope, "filter", at::full({width, rings}, each, scope.dtype()));
    alias_ = scope.add("walias", {width, l, l, 2}, Init::zeros());
  }

  // (..., l, m, 2) -> (..., N).
  at::Tensor synthesise(const at::Tensor& weight) const {
    return own_nodes(coarse_.synthesise(at::view_as_complex(weight.contiguous())), nodes_, -1);
  }

  // (B, 1, E, N, P) -> the same, low-pass.
  at::Tensor filtered(const at::Tensor& state) const {
    const at::Tensor plain = state.transpose(-1, -2);  // (..., P, N)
    const at::Tensor sums = at::cumsum(filter_.square(), 1);
    const at::Tensor factor = 1.0 - sums / (1.0 + sums);  // (P, l)
    const at::Tensor waves = full_.analyse(all_nodes(plain, nodes_, -1));
    at::Tensor smooth = own_nodes(full_.synthesise(waves * factor.unsqueeze(-1)), nodes_, -1);
    if (anti_aliasing_) {
      const at::Tensor share = at::sigmoid(synthesise(alias_));
      smooth = share * plain + (1.0 - share) * smooth;
    }
    return smooth.transpose(-1, -2);
  }

  double buffer_;
  bool truncate_, anti_aliasing_;
  SphericalTransform coarse_, full_;  // of all nodes: every rank works on whole fields
  NodeTensors nodes_;
  at::Tensor prognostic_, regressors_;
  at::Tensor weight_, mean_mask_, filter_, alias_;
};

}  // namespace

std::unique_ptr<Residual> make_scalar_ornstein(const ParameterScope& scope,
                                               const ResidualOptions& options,
                                               const ResidualInputs& inputs) {
  return std::make_unique<ScalarOrnsteinResidual>(scope, options, inputs);
}

std::unique_ptr<Residual> make_spectral_ornstein(const ParameterScope& scope,
                                                 const ResidualOptions& options,
                                                 const ResidualInputs& inputs) {
  return std::make_unique<SpectralOrnsteinResidual>(scope, options, inputs);
}

}  // namespace aifs::model
