// SPDX-License-Identifier: Apache-2.0
#include "train/options.h"

#include <algorithm>

#include "core/check.h"
#include "core/time.h"

namespace aifs::train {

void TendencyScalerOptions::bind(config::Binder& b) {
  b.text("timestep", timestep,
         {"time difference whose tendency statistics are used; empty takes data.timestep"});
  b.boolean("skip_first_column", skip_first_column,
            {"leave the variable in dataset column 0 at weight 1, as Anemoi's release does"});
}

void LossOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"error of one value, in normalised units"});
  b.number("huber_delta", huber_delta, {.min = 1e-9},
           {"huber: where the error turns from quadratic to linear", "normalised"});
  b.boolean("ignore_nans", ignore_nans, {"count NaN in prediction or target as no error"});
  b.text_list("scalers", scalers,
              {"weights multiplied onto the errors, in this order: pressure_level, "
               "general_variable, node_weights, time_steps, stdev_tendency, var_tendency, "
               "nan_mask_weights"});
  b.section("level", level, {"weights of pressure levels (scaler pressure_level)"});
  b.number_map("variable_weights", variable_weights, {.min = 0.0},
               {"weight per parameter, and \"default\" (scaler general_variable)"});
  b.choice("node_norm", node_norm, {"normalisation of the area weights (scaler node_weights)"});
  b.number_list("time_weights", time_weights, {.min = 0.0},
                {"weights of the output times of one step; empty weighs them equally"});
  b.section("tendency", tendency, {"weights from tendency statistics"});
}

void LossOptions::validate(const std::string& path) const {
  scaler_kinds();
  if (!time_weights.empty() &&
      std::all_of(time_weights.begin(), time_weights.end(), [](double w) { return w == 0.0; })) {
    throw ConfigError(path + ".time_weights", "are all 0: nothing is left to learn from");
  }
  if (!tendency.timestep.empty()) {
    try {
      parse_duration(tendency.timestep);
    } catch (const Error& error) {
      throw ConfigError(path + ".tendency.timestep", error.what(), error.hint());
    }
  }
}

std::vector<ScalerKind> LossOptions::scaler_kinds() const {
  std::vector<ScalerKind> kinds;
  for (size_t i = 0; i < scalers.size(); ++i) {
    const auto& table = EnumNames<ScalerKind>::table;
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const auto& entry) { return scalers[i] == entry.second; });
    if (found == table.end()) {
      throw ConfigError(concat("loss.scalers.", i), concat("no scaler '", scalers[i], "'"),
                        nearest_names(scalers[i], enum_names<ScalerKind>()));
    }
    if (std::find(kinds.begin(), kinds.end(), found->first) != kinds.end()) {
      throw ConfigError(concat("loss.scalers.", i), concat("'", scalers[i], "' is named twice"));
    }
    kinds.push_back(found->first);
  }
  const bool has_grid =
      std::find(kinds.begin(), kinds.end(), ScalerKind::kNodeWeights) != kinds.end();
  if (!kinds.empty() && !has_grid) {
    throw ConfigError("loss.scalers", "a loss with scalers needs node_weights among them",
                      "without it the loss would grow with the number of nodes");
  }
  return kinds;
}

void ValidationOptions::bind(config::Binder& b) {
  b.integer("every_steps", every_steps, {.min = 0},
            {"validate after every so many; 0 never", "steps"});
  b.integer("every_epochs", every_epochs, {.min = 0},
            {"validate after every so many; 0 never", "epochs"});
  b.boolean("at_end", at_end, {"validate when training ends"});
  b.text_list("lead_times", lead_times,
              {"lead times at which forecasts are compared with the truth; empty is one timestep"},
              config::TextKind::kDuration);
  b.integer("max_dates", max_dates, {.min = 0},
            {"start forecasts at no more than so many dates, evenly spread; 0 takes all", "dates"});
  b.choice("weights", weights,
           {"weights of the cells in RMSE: area of the graph's cells, cosine of "
            "latitude, or none"});
}

void ValidationOptions::validate(const std::string& path) const {
  for (size_t i = 0; i < lead_times.size(); ++i) {
    if (parse_duration(lead_times[i]) <= 0) {
      throw ConfigError(concat(path, ".lead_times.", i), "a lead time must be positive");
    }
  }
}

void TrainOptions::bind(config::Binder& b) {
  b.integer("max_steps", max_steps, {.min = 0}, {"optimiser steps; 0: no limit", "steps"});
  b.integer("max_epochs", max_epochs, {.min = 0}, {"passes over the data; 0: no limit", "epochs"});
  b.number("max_minutes", max_minutes, {.min = 0.0},
           {"stop with a checkpoint after so long, to be resumed; 0: no limit", "min"});
  b.integer("accumulate_batches", accumulate_batches, {.min = 1, .max = 1 << 20},
            {"batches whose gradients are averaged for one optimiser step"});
  b.choice(
      "precision", precision,
      {"type of weights and arithmetic; tf32: fp32 with products on the tensor cores of a GPU; "
       "bf16-mixed: fp32 weights, activations and products in bfloat16"});
  b.section("rollout", rollout, {"forecast steps per training sample"});
  b.section("validation", validation,
            {"forecasts from validation dates, scored in physical units"});
}

void TrainOptions::validate(const std::string& path) const {
  if (max_steps == 0 && max_epochs == 0) {
    throw ConfigError(path + ".max_steps",
                      "max_steps and max_epochs are both 0: training never ends");
  }
}

void OptimizerOptions::bind(config::Binder& b) {
  b.number("beta1", adamw.beta1, {.min = 0.0, .max = 1.0 - 1e-9},
           {"AdamW: decay of the mean gradient"});
  b.number("beta2", adamw.beta2, {.min = 0.0, .max = 1.0 - 1e-9},
           {"AdamW: decay of the mean squared gradient"});
  b.number("eps", adamw.eps, {.min = 0.0}, {"AdamW: added to the root of the mean square"});
  b.number("weight_decay", adamw.weight_decay, {.min = 0.0},
           {"AdamW: decoupled decay of every parameter"});
  b.section("schedule", schedule, {"learning rate"});
  b.choice("clip", clip, {"clip gradients by element, by global norm, or not"});
  b.number("clip_limit", clip_limit, {.min = 1e-12}, {"largest absolute element, or largest norm"});
}

void CheckpointOptions::bind(config::Binder& b) {
  b.integer("every_steps", every_steps, {.min = 0},
            {"write after every so many; 0 never", "steps"});
  b.integer("every_epochs", every_epochs, {.min = 0},
            {"write after every so many; 0 never", "epochs"});
  b.boolean("at_end", at_end, {"write when training ends"});
  b.integer("keep", keep, {.min = 0}, {"newest checkpoints to keep; 0 keeps all"});
}

void LogOptions::bind(config::Binder& b) {
  b.integer("every_steps", every_steps, {.min = 1},
            {"a line in the log after every so many", "steps"});
  b.boolean("tensorboard", tensorboard, {"write TensorBoard event files to <run.dir>/tensorboard"});
  b.boolean("progress_bar", progress_bar, {"show a progress bar on a terminal"});
}

void ProfileOptions::bind(config::Binder& b) {
  b.boolean("parts", parts, {"print a table of the time spent per part of a step at the end"});
}

}  // namespace aifs::train
