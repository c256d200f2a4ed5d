// SPDX-License-Identifier: Apache-2.0
// What a run is, on one screen, before it starts. Each line holds for every configuration: it is
// made of the options in effect, not of those that a kind of loss or network does not read.
#pragma once

#include <string>
#include <vector>

#include "app/run/wiring.h"

namespace aifs::app {

// `places` has "<host>: <device>" of every rank, in order; one alone is not mentioned.
std::string run_card(const Run& run, const std::vector<std::string>& places = {});

// Lines of the card, each without its label.

// Ranks by host and device: one line for all hosts that are alike, naming the first few and the
// last.
std::vector<std::string> host_lines(const std::vector<std::string>& places);
// `parameters` counts what can be trained, `frozen` what of it is not.
std::string model_text(const model::ModelOptions& model, int64_t parameters, int64_t frozen);
// The terms that are added up, with their weights and scalers.
std::string loss_text(const train::LossOptions& loss);
// The learning rate is the one that `lr_scaling` makes of so many samples of a step.
std::string optimizer_text(const train::OptimizerOptions& optimizer, int64_t samples_per_step);
// How long, and how long the forecasts are.
std::string length_text(const train::TrainOptions& train);

}  // namespace aifs::app
