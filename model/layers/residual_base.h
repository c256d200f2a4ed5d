// SPDX-License-Identifier: Apache-2.0
// What the residuals of model/layers/residual.h have in common: their options, what they may need
// to know, and the interface that networks use.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "model/base/parameters.h"
#include "model/nodes/graph_tensors.h"
#include "model/nodes/local_matrix.h"

namespace aifs::model {

enum class ResidualKind { kSkip, kNone, kTruncated, kScalarOrnstein, kSpectralOrnstein };
enum class SpectralGrid { kRegular, kOctahedral };

struct ResidualOptions {
  ResidualKind kind = ResidualKind::kSkip;
  int64_t step = -1;
  std::string truncation_grid = {};
  int64_t truncation_neighbours = 4;
  double truncation_sigma = 1.0;
  std::string truncation_down = {}, truncation_up = {};  // files, instead of a grid
  double theta_init = 0.0;
  double theta_buffer = 0.0;
  bool theta_train = true;
  std::vector<std::string> regressors = {};
  int64_t lmax = 2;
  SpectralGrid grid = SpectralGrid::kRegular;
  bool use_mean = true;
  bool truncate = false;
  bool anti_aliasing = true;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// Describes what a residual may need to know of the dataset; `path` is the JSON path for
// ConfigErrors.
struct ResidualInputs {
  int64_t times_in = 1;
  std::vector<std::string> input_names = {};            // V_in; may be empty if no option names one
  std::vector<int64_t> input_prognostic = {};           // columns of the prognostic variables
  std::vector<double> stdev = {}, stdev_tendency = {};  // of the prognostic variables, or empty
  NodeTensors nodes = {};                               // of the grid
  SparseMatrix down = {}, up = {};                      // truncated, of the whole grid
  std::string path = "model.residual";
};

class Residual {
 public:
  virtual ~Residual() = default;
  // Returns what the network is given instead of x; x itself for most. On the first stage of a
  // pipeline.
  virtual at::Tensor prepare(const at::Tensor& x) const { return x; }
  virtual bool changes_input() const { return false; }  // whether that is something else than x
  // prepare(x) (B, T, E, N, V_in) -> (B, 1, E, N, P), the prognostic variables in dataset order.
  // On the last stage. Both take and give own nodes; truncated and spectral ones are collective.
  virtual at::Tensor forward(const at::Tensor& x) const = 0;
  // The input time of which that is the prognostic columns as they are; none: it is something else.
  virtual std::optional<int64_t> input_time() const { return std::nullopt; }
};

// The columns as a constant tensor of the set, int64.
at::Tensor constant_indices(const ParameterScope& scope, const std::vector<int64_t>& columns);

constexpr auto enum_table(ResidualKind) {
  using enum ResidualKind;
  return std::to_array<EnumName<ResidualKind>>({{kSkip, "skip"},
                                                {kNone, "none"},
                                                {kTruncated, "truncated"},
                                                {kScalarOrnstein, "scalar_ornstein"},
                                                {kSpectralOrnstein, "spectral_ornstein"}});
}

constexpr auto enum_table(SpectralGrid) {
  using enum SpectralGrid;
  return std::to_array<EnumName<SpectralGrid>>(
      {{kRegular, "regular"}, {kOctahedral, "octahedral"}});
}

}  // namespace aifs::model
