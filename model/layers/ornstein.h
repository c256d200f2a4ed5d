// SPDX-License-Identifier: Apache-2.0
// The residuals that draw the newest state back to a learnt mean (Anemoi's Ornstein connections):
//   gain * x + mean + sum of weights times regressors,  gain = 1 - buffer - (1 - buffer) sigmoid(w)
// with numbers per variable (scalar), or fields per variable made of spherical harmonics
// (spectral). The latter may filter x, learning what it keeps of every total wavenumber and where.
//
// The trap: the reference filters in place, so that the encoder sees the filtered state too.
#pragma once

#include "model/layers/residual_base.h"

namespace aifs::model {

std::unique_ptr<Residual> make_scalar_ornstein(const ParameterScope& scope,
                                               const ResidualOptions& options,
                                               const ResidualInputs& inputs);
// Needs all nodes of a regular or octahedral grid, ring by ring from north to south. Throws
// ConfigError if the nodes are not such a grid.
std::unique_ptr<Residual> make_spectral_ornstein(const ParameterScope& scope,
                                                 const ResidualOptions& options,
                                                 const ResidualInputs& inputs);

}  // namespace aifs::model
