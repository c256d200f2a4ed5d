// SPDX-License-Identifier: Apache-2.0
// What is added to the prognostic outputs: a known first guess of the next state, from the inputs
// (Anemoi's residual connections).
//   skip       the state at one input time, the newest by default
//   truncated  the newest state after a way to a coarse grid and back: large scales only
//   ornstein   the newest state drawn back to a mean, both learnt per variable (scalar) or per
//              variable and place, as spherical harmonics (spectral)
#pragma once

#include <memory>
#include <string>

#include "model/layers/residual_base.h"
#include "model/nodes/truncation.h"

namespace aifs::model {

// The matrices of a truncated residual on nodes (N, 2), latitude and longitude in radians: made for
// its grid, or read. Throws ConfigError (below `path`), DataError.
Truncation truncation_of(const ResidualOptions& options, const at::Tensor& latlon_rad,
                         const std::string& path);

// Registers learnt tensors under `scope`. Null for kNone.
std::unique_ptr<Residual> make_residual(const ParameterScope& scope, const ResidualOptions& options,
                                        const ResidualInputs& inputs);

}  // namespace aifs::model
