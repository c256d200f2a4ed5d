// SPDX-License-Identifier: Apache-2.0
#include "train/step_figures.h"

#include <nlohmann/json.hpp>

namespace aifs::train {

nlohmann::ordered_json to_json(const StepFigures& figures, const LoopState& state) {
  nlohmann::ordered_json line{{"step", state.step},         {"epoch", state.epoch},
                              {"loss", figures.loss},       {"lr", figures.lr},
                              {"step_s", figures.step_s},   {"data_wait_s", figures.data_s},
                              {"samples", figures.samples}, {"rollout", figures.rollout}};
  if (figures.gradient_norm) line["gradient_norm"] = *figures.gradient_norm;
  if (figures.skipped) line["skipped"] = true;
  if (figures.loss_scale) line["loss_scale"] = *figures.loss_scale;
  return line;
}

std::vector<std::string> step_columns() {
  return {"step",         "epoch",      "loss",
          "lr",           "step_s",     "data_wait_s",
          "samples",      "rollout",    "gradient_norm",
          "skipped",      "loss_scale", "samples_per_s",
          "tflops_per_s", "mfu",        "sustained_samples_per_s",
          "goodput"};
}

}  // namespace aifs::train
