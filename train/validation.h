// SPDX-License-Identifier: Apache-2.0
// Forecasts from validation dates, scored against the truth and against persistence, per variable
// and lead time, in physical units. A pure function of weights and data: the same figures whether
// it runs during training or alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/data_loader.h"
#include "data/device_feed.h"
#include "parallel/process_mesh.h"
#include "train/loss_setup.h"
#include "train/options.h"
#include "train/output_chain.h"
#include "train/rollout.h"

namespace aifs::train {

// Scores at one lead time; vectors over model outputs (V_out), physical units. Where the first
// input of a variable was imputed there is no truth: its error counts as 0, as in Anemoi's metrics.
struct LeadTimeScores {
  int64_t lead_time_s = 0;
  int64_t num_dates = 0;
  std::vector<double> rmse, persistence_rmse;
};

struct ValidationResult {
  double loss = 0.0;      // training loss of the first step(s), mean over dates
  int64_t num_dates = 0;  // dates that the loss is over
  std::vector<LeadTimeScores> lead_times;
};

struct ValidationSetup {
  const data::SampleSource& source;
  const data::VariableTable& variables;
  Window window;
  int64_t timestep_s = 0;
  std::vector<float> cell_weights;  // (N) of all cells
  data::PostProcessor post_processor = {};
  data::NodeRange nodes;  // this rank's cells
  const parallel::ProcessMesh& mesh;
  int64_t threads = 1, prefetch_batches = 1;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  NodeSlice loss_nodes = {};  // `nodes` among those of the model group
};

// Throws ConfigError if a lead time is not a multiple of the timestep, DataError if no validation
// date has both inputs and truth.
class Validation {
 public:
  Validation(const ValidationOptions& options, const ValidationSetup& setup);

  // Collective over all ranks: replicas share the dates, model groups the cells. Every rank gets
  // the same result.
  ValidationResult run(const Forecaster& forecaster, const Loss& loss) const;

  int64_t num_dates() const { return num_dates_; }
  const std::vector<int64_t>& lead_times_s() const { return lead_times_s_; }

 private:
  struct Sums;
  void sum_over_ranks(Sums& sums) const;
  // `valid`: 0 where an output was imputed, else 1, (1, 1, N, V_out); undefined: 1 everywhere.
  void add_errors(const ForecastStep& step, const at::Tensor& persistence, const at::Tensor& valid,
                  Sums& sums) const;

  ValidationSetup setup_;
  std::vector<int64_t> lead_times_s_;
  int64_t num_dates_ = 0;                     // of all replicas
  std::vector<data::BatchRequest> requests_;  // of this replica
  std::vector<int64_t> steps_;                // forecast steps of each request
  at::Tensor weights_;                        // (n, 1) fp64, sum over all cells 1
  OutputChain outputs_;
};

// Mean over the prognostic variables of RMSE / persistence RMSE.
double mean_ratio(const LeadTimeScores& scores, const data::VariableTable& variables);

// {"loss", "num_dates", "lead_times": {"6h": {"mean_ratio", "num_dates", "rmse": {...}, ...}}}
nlohmann::ordered_json to_json(const ValidationResult& result,
                               const data::VariableTable& variables);

// A table for people: variables by lead times, RMSE and skill (1 - RMSE / persistence).
std::string to_table(const ValidationResult& result, const data::VariableTable& variables);

}  // namespace aifs::train
