// SPDX-License-Identifier: Apache-2.0
#include "model/layers/residual_base.h"

#include <ATen/ATen.h>

namespace aifs::model {

void ResidualOptions::bind(config::Binder& b) {
  b.choice("kind", kind,
           {"skip adds the state of an input time; truncated its large scales; the ornstein kinds "
            "a state drawn back to a learnt mean"});
  b.integer("step", step, {.min = -64, .max = 64}, {"skip: which input time; -1: the newest"});
  b.text("truncation_grid", truncation_grid,
         {"truncated: the coarse grid, tri<refinement> or a Gaussian grid such as o16"});
  b.integer("truncation_neighbours", truncation_neighbours, {.min = 1, .max = 1024},
            {"truncated: how many nearest nodes of the other grid a node is the mean of"});
  b.number("truncation_sigma", truncation_sigma, {.min = 1e-6, .max = 10.0},
           {"truncated: width of their Gaussian weights", "rad"});
  b.text("truncation_down", truncation_down,
         {"truncated: the matrix to a coarse grid, used as it is, instead of truncation_grid: a "
          "file of scipy.sparse.save_npz, or .safetensors with index (2, M), value (M) and shape "
          "(2)"},
         config::TextKind::kPath);
  b.text("truncation_up", truncation_up, {"truncated: the matrix back from it"},
         config::TextKind::kPath);
  b.number("theta_init", theta_init, {.min = 0.0, .max = 1.0},
           {"ornstein: initial pull towards the mean; 0: from the statistics of the dataset"});
  b.number("theta_buffer", theta_buffer, {.min = 0.0, .max = 0.99},
           {"ornstein: smallest pull towards the mean"});
  b.boolean("theta_train", theta_train, {"scalar_ornstein: whether it is learnt"});
  b.text_list("regressors", regressors, {"ornstein: inputs that shift the mean"});
  b.integer("lmax", lmax, {.min = 1, .max = 4096},
            {"spectral_ornstein: number of total wavenumbers"});
  b.choice("grid", grid, {"spectral_ornstein: how the data grid is made"});
  b.boolean("use_mean", use_mean, {"spectral_ornstein: whether there is a mean"});
  b.boolean("truncate", truncate, {"spectral_ornstein: learn a low-pass filter of the state"});
  b.boolean("anti_aliasing", anti_aliasing,
            {"spectral_ornstein: learn where the filtered and where the plain state is used"});
}

void ResidualOptions::validate(const std::string& path) const {
  if (truncation_down.empty() != truncation_up.empty()) {
    throw ConfigError(path + ".truncation_up", "and truncation_down belong together");
  }
  const int ways = !truncation_grid.empty() + !truncation_down.empty();
  if (ways != (kind == ResidualKind::kTruncated)) {
    throw ConfigError(path + ".truncation_grid",
                      kind == ResidualKind::kTruncated
                          ? "truncated needs a coarse grid, or truncation_down and truncation_up"
                          : "is for truncated only, as are truncation_down and truncation_up");
  }
  if (kind == ResidualKind::kSpectralOrnstein && !theta_train) {
    throw ConfigError(path + ".theta_train", "is for scalar_ornstein only");
  }
}

at::Tensor constant_indices(const ParameterScope& scope, const std::vector<int64_t>& columns) {
  return scope.set().add_constant(at::tensor(columns, at::kLong));
}

}  // namespace aifs::model
