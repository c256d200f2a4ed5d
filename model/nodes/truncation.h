// SPDX-License-Identifier: Apache-2.0
// The way to a coarse grid and back that the truncated residual takes: every node is the mean of
// its nearest neighbours on the other grid, with Gaussian weights of their distance.
#pragma once

#include <string>

#include "model/kernels/sparse_product.h"

namespace aifs::model {

struct Truncation {
  SparseMatrix down, up;  // to the coarse grid, and from it; every row sums to 1
};

// Between nodes (N, 2) and coarse nodes, latitude and longitude in radians, f32. `sigma_rad` is the
// width of the Gaussian. Throws Error for fewer nodes than neighbours.
Truncation make_truncation(const at::Tensor& latlon_rad, const at::Tensor& coarse_latlon_rad,
                           int64_t neighbours, double sigma_rad);

// Nodes of "tri<refinement>" (icosphere) or of a Gaussian grid by name ("o16", "n32"). Throws Error
// saying what there is for any other name.
at::Tensor coarse_grid(const std::string& name);

}  // namespace aifs::model
