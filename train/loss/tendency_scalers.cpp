// SPDX-License-Identifier: Apache-2.0
#include "train/loss/tendency_scalers.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"

namespace aifs::train {

namespace {

const data::Statistics& tendencies_over(const std::string& timestep, const LossInputs& inputs) {
  const int64_t delta_s = timestep.empty() ? inputs.timestep_s : parse_duration(timestep);
  const auto found = inputs.tendencies.find(delta_s);
  if (found != inputs.tendencies.end()) return found->second;
  std::string known;
  for (const auto& [delta, statistics] : inputs.tendencies) {
    known += concat(known.empty() ? "" : ", ", format_duration(delta));
  }
  throw DataError(concat("the dataset has no tendency statistics over ", format_duration(delta_s)),
                  known.empty()
                      ? "it has none at all; leave the tendency scaler out of loss.scalers"
                      : concat("it has them over ", known));
}

}  // namespace

void TendencyScalerOptions::bind(config::Binder& b) {
  b.text("timestep", timestep,
         {"time difference whose tendency statistics are used; empty takes data.timestep"});
  b.boolean("skip_first_column", skip_first_column,
            {"leave the variable in dataset column 0 at weight 1, as Anemoi's release does"});
}

void TendencyScalerOptions::validate(const std::string& path) const {
  if (timestep.empty()) return;
  try {
    parse_duration(timestep);
  } catch (const Error& error) {
    throw ConfigError(path + ".timestep", error.what(), error.hint());
  }
}

at::Tensor tendency_weights(const data::VariableTable& variables,
                            const data::Statistics& statistics, const data::Statistics& tendencies,
                            int power, bool skip_first_column) {
  std::vector<double> weights;
  for (const int64_t column : variables.output_columns()) {
    const auto v = static_cast<size_t>(column);
    if (variables.role(column) != data::Role::kPrognostic || (column == 0 && skip_first_column)) {
      weights.push_back(1.0);
      continue;
    }
    const double ratio = statistics.stdev[v] / tendencies.stdev[v];
    if (!std::isfinite(ratio)) {
      throw DataError(
          concat("variable '", variables.names()[v], "' has stdev ", statistics.stdev[v], ", and ",
                 tendencies.stdev[v], " among the statistics_tendencies: no loss weight follows"),
          "leave the tendency scaler out of loss.scalers");
    }
    weights.push_back(std::pow(ratio, power));
  }
  return weights_of(weights);
}

template <int power>
at::Tensor TendencyKind<power>::weights(const ScalerPlace& place) const {
  const LossInputs& inputs = place.inputs;
  return tendency_weights(inputs.variables, inputs.statistics,
                          tendencies_over(tendency.timestep, inputs), power,
                          tendency.skip_first_column);
}

template struct TendencyKind<1>;
template struct TendencyKind<2>;

}  // namespace aifs::train
