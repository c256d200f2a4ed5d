// SPDX-License-Identifier: Apache-2.0
// Weights from how much variables change with time: the scalers "stdev_tendency" and
// "var_tendency".
#pragma once

#include "train/loss/scaler_kind.h"

namespace aifs::train {

struct TendencyScalerOptions {
  std::string timestep;  // empty: data.timestep
  bool skip_first_column = false;
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// (stdev / tendency stdev)^power for prognostic outputs, 1 for diagnostic ones: (V_out), fp32.
// Anemoi's release leaves a prognostic variable in dataset column 0 at weight 1;
// `skip_first_column` does so too. Throws DataError if a weight is not finite.
at::Tensor tendency_weights(const data::VariableTable& variables,
                            const data::Statistics& statistics, const data::Statistics& tendencies,
                            int power, bool skip_first_column);

template <int power>
struct TendencyKind : WeightsKind {
  TendencyScalerOptions tendency;

  void bind_settings(config::Binder& b) override {
    b.section("tendency", tendency, {"weights from tendency statistics"});
  }
  void validate(const std::string& path) const override { tendency.validate(path + ".tendency"); }
  at::Tensor weights(const ScalerPlace& place) const override;
};

using StdevTendencyKind = TendencyKind<1>;
using VarTendencyKind = TendencyKind<2>;
extern template struct TendencyKind<1>;
extern template struct TendencyKind<2>;

}  // namespace aifs::train
