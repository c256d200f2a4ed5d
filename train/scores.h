// SPDX-License-Identifier: Apache-2.0
// The figures of a validation (train/validation.h), as JSON and as a table.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/fields/variables.h"

namespace aifs::train {

// Scores of the cells of a region, or of those around it; vectors as below.
struct RegionScores {
  std::string name;    // "inside_lam", "outside_lam"
  double share = 0.0;  // of the weight of all cells
  std::vector<double> rmse, persistence_rmse;
  std::vector<int64_t> constant = {};
  std::vector<double> bias = {}, mae = {}, activity = {}, truth_activity = {};
};

// Scores at one lead time; vectors over model outputs (V_out), physical units. Where the first
// input of a variable was imputed there is no truth: its error counts as 0, as in Anemoi's metrics.
struct LeadTimeScores {
  int64_t lead_time_s = 0;
  int64_t num_dates = 0;
  std::vector<double> rmse, persistence_rmse;
  // Prognostic outputs that do not change, as the dataset says or as persistence forecasts them
  // without error: no ratio is formed of them.
  std::vector<int64_t> constant = {};
  std::vector<RegionScores> regions = {};  // those with any weight
  // Mean of forecast minus truth, and of its absolute value; standard deviations over the cells.
  std::vector<double> bias = {}, mae = {}, activity = {}, truth_activity = {};
};

// Scores of one of several datasets.
struct DatasetScores {
  std::string name;
  const data::VariableTable* variables = nullptr;
  std::vector<LeadTimeScores> lead_times;
};

// How a validation ended, the same on every rank.
struct ValidationResult {
  double loss = 0.0;       // training loss, mean over the steps of the rollout and over dates
  int64_t rollout = 1;     // forecast steps of that loss
  int64_t loss_dates = 0;  // dates that it is over: those with truth for so many steps
  int64_t num_dates = 0;   // dates that forecasts start at
  std::vector<LeadTimeScores> lead_times;  // of the first dataset, or of the only one
  std::string name = {};                   // of the first dataset, where there are several
  std::vector<DatasetScores> further = {};
  // Why there are no scores: data that cannot be read or scored, another error, on any rank, or a
  // stop. Empty and false: the scores are there.
  std::string failure;
  bool stopped = false;

  bool has_scores() const { return failure.empty() && !stopped; }
};

// Mean over the prognostic variables of RMSE / persistence RMSE, without constant ones; NaN if
// all are constant.
double mean_ratio(const LeadTimeScores& scores, const data::VariableTable& variables);
double mean_ratio(const RegionScores& scores, const data::VariableTable& variables);

// Those of all datasets; `variables` are those of the first, as below.
std::vector<DatasetScores> all_scores(const ValidationResult& result,
                                      const data::VariableTable& variables);

// {"loss", "rollout", "num_dates", "lead_times": {"6h": {"mean_ratio", "num_dates", "rmse": {...},
// "persistence_rmse", "skill", "bias", "mae", "activity", "truth_activity"}}}; scores of regions
// stand beside those of the whole, with the region at the end of their names ("rmse_inside_lam"),
// and "weight_inside_lam". "constant" lists what the mean ratios leave out, "loss_dates" is there
// where it differs from "num_dates". Of several datasets each has its "lead_times", in "datasets".
nlohmann::ordered_json to_json(const ValidationResult& result,
                               const data::VariableTable& variables);

// A table for people: variables by lead times, RMSE and skill (1 - RMSE / persistence).
std::string to_table(const ValidationResult& result, const data::VariableTable& variables);

}  // namespace aifs::train
