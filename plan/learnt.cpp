// SPDX-License-Identifier: Apache-2.0
// What there is beside encoder, processor and decoder: the MLP on noise, and residuals.
#include "plan/layers.h"

namespace aifs::plan {

Rows noise_condition(Tape& tape, const model::EnsembleOptions& options, int64_t rows) {
  const model::MlpOptions noise_mlp{.in = options.noise_channels,
                                    .hidden = options.noise_hidden,
                                    .out = options.noise_channels,
                                    .extra_layers = 0,
                                    .activation = options.noise_activation};
  const Rows noise = tape.make(rows, options.noise_channels);
  tape.move(2.0 * noise.storage);
  return mlp(tape, noise_mlp, {}, {MlpInput::Kind::kPlain, noise, {}});
}

void learnt_residual(Tape& tape, const model::ResidualOptions& options,
                     const ResidualSizes& sizes) {
  const bool spectral = options.kind == model::ResidualKind::kSpectralOrnstein;
  const bool scalar = options.kind == model::ResidualKind::kScalarOrnstein;
  if (!options.theta_train || !(spectral || scalar)) return;
  const auto num_regressors = static_cast<int64_t>(options.regressors.size());
  const int64_t p = sizes.prognostic, waves = 2 * options.lmax * options.lmax;
  const int64_t rows = sizes.nodes * sizes.copies;
  tape.parameter((2 + num_regressors) * p * (spectral ? waves : 1));
  const auto keep = [&](int64_t count, int64_t width) {
    const Rows field = tape.make(count, width, tape.types().weight);
    tape.save(field);
    tape.move(2.0 * field.storage);
  };
  keep(rows, 2 * p + num_regressors);  // state, what is added to the output, regressors
  if (!spectral) return;
  keep(sizes.nodes, p);  // the pull
  if (!options.truncate) return;
  // The filtered state has a gradient, too.
  tape.parameter(p * sizes.rings);
  tape.parameter(p * waves);
  keep(sizes.nodes, p);  // the gain
  if (num_regressors > 0) keep(sizes.nodes, (2 + num_regressors) * p);
  keep(sizes.copies * sizes.rings * sizes.rings, 2 * p);  // waves before the filter
  keep(rows, p);                                          // after it
  if (!options.anti_aliasing) return;
  keep(rows, 2 * p);         // the plain state and the smooth one
  keep(sizes.nodes, 2 * p);  // their shares
}

void sparse_product(Tape& tape, const MatrixSize& matrix, int64_t width) {
  const auto field = [&](int64_t rows) {
    return tape.make(rows, width, tape.types().weight).storage;
  };
  const double from = field(matrix.columns), terms = field(matrix.entries), to = field(matrix.rows);
  // Put side by side by nodes; gathered, multiplied, summed.
  tape.move(2.0 * from + 5.0 * terms + to);
  tape.transient(from + 2.0 * terms + to);
}

}  // namespace aifs::plan
