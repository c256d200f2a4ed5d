// SPDX-License-Identifier: Apache-2.0
// The section "loss" of a configuration: one loss, or a weighted sum of several, with the scalers
// they share. Each kind has options of its own (loss_kind.h); those of another kind are refused,
// and so is a list, a mask or a named scaler that no loss in use reads.
#pragma once

#include <string>
#include <vector>

#include "core/config.h"
#include "data/fields/variables.h"
#include "train/loss/loss_kind.h"
#include "train/loss/multi_scale_loss.h"
#include "train/loss/scaler_kind.h"

namespace aifs::train {

// Smoothers made from neighbours, to which the fields as they are come as the last scale, or read
// from files. One weight for each scale.
struct ScalesOptions {
  std::vector<double> weights;             // empty: no scales
  std::vector<std::string> files;          // from coarse to fine; an empty name: fields as they are
  std::vector<SmootherOptions> smoothers;  // from coarse to fine
  bool of_aggregates = false;  // scales of aggregates over time, instead of aggregates of scales
  int64_t num_scales = 0;
  int64_t base_neighbours = 4;
  double base_sigma = 0.1;
  double scale_factor = 2.0;
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct LossTermOptions {
  config::Tagged<LossKind> kind;  // mse
  double weight = 1.0;
  bool ignore_nans = false;
  std::vector<std::string> variables;         // empty: all outputs
  std::vector<std::string> target_variables;  // empty: the same
  std::vector<std::string> scalers;
  std::vector<std::string> time_aggregation;
  ScalesOptions scales;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
  std::vector<TimeAggregate> time_aggregates(const std::string& path) const;
};

struct LossOptions : LossTermOptions {
  LossOptions();

  std::vector<LossTermOptions> terms;  // empty: the loss above
  // The scaler without a name of every kind. Which of them is chosen means nothing.
  config::Tagged<ScalerKind> unnamed_scalers;
  std::vector<std::pair<std::string, ScalerOptions>> named_scalers;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;

  // The terms with what they take over from the section (scalers that they do not name), and their
  // JSON paths.
  std::vector<std::pair<std::string, LossTermOptions>> effective_terms() const;

  // The scaler of a name: one of `named_scalers`, else the unnamed one of the kind; and its JSON
  // path. `path` is where the name stands. Throws ConfigError.
  ScalerOptions scaler(const std::string& name, const std::string& path) const;
  std::string scaler_path(const std::string& name) const;

  // Checks what must hold before any data is read, given how many members a forecast has and how
  // many times a step predicts. Throws ConfigError.
  void check(int64_t members, int64_t times_out) const;
  // Checks names of variables; `targets`: what outputs can be compared with, empty for the
  // outputs themselves. Throws ConfigError.
  void check_names(const data::VariableTable& table,
                   const std::vector<std::string>& targets = {}) const;

 private:
  void check_scalers(const LossTermOptions& term, const std::string& path) const;
};

}  // namespace aifs::train
