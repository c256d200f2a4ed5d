// SPDX-License-Identifier: Apache-2.0
// Forecasts from validation dates, scored against the truth and against persistence, per variable
// and lead time, in physical units. A pure function of weights and data: the same figures whether
// it runs during training or alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/loader/data_loader.h"
#include "data/loader/joint_feed.h"
#include "parallel/process_mesh.h"
#include "train/loss/loss_setup.h"
#include "train/options.h"
#include "train/output_chain.h"
#include "train/rollout.h"
#include "train/scores.h"

namespace aifs::train {

struct FieldSums;

// Describes what changes from one validation of a run to the next.
struct ValidationCall {
  int64_t rollout = 1;  // forecast steps of the loss
  // Asked on all ranks between forecast steps, and while reading: all leave if one is to stop.
  std::function<bool()> should_stop = nullptr;
};

// Cells whose scores are given apart, by the name of their region.
struct NamedCells {
  std::string name;
  at::Tensor cells;  // (N) bool
};

// One more dataset, of the same dates as the first; members as in ValidationSetup.
struct FurtherValidation {
  std::string name;
  const data::SampleSource& source;
  const data::VariableTable& variables;
  std::vector<float> cell_weights;
  at::Tensor region = {};
  std::vector<NamedCells> regions = {};
  data::PostProcessor post_processor = {};
  data::NodeRange nodes;
  data::LoaderOptions loading = {.threads = 1, .prefetch_batches = 1};
  LossPtr loss;
  NodeSlice loss_nodes = {};
};

struct ValidationSetup {
  const data::SampleSource& source;
  const data::VariableTable& variables;
  Window window;
  int64_t timestep_s = 0;
  std::vector<float> cell_weights;       // (N) of all cells
  at::Tensor region = {};                // (N) bool, true for cells of a region; none: no region
  std::vector<NamedCells> regions = {};  // further ones, whose scores have their names
  data::PostProcessor post_processor = {};
  data::NodeRange nodes;  // this rank's cells
  const parallel::ProcessMesh& mesh;
  data::LoaderOptions loading = {.threads = 1, .prefetch_batches = 1};  // but for its nodes
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  NodeSlice loss_nodes = {};    // `nodes` among those of the model group
  int64_t longest_rollout = 1;  // of the losses that will be asked for
  std::string name = {};        // of the first dataset, where there are several
  std::vector<FurtherValidation> further = {};
};

// Throws ConfigError if a lead time is not a multiple of the timestep, DataError if no validation
// date has both inputs and truth, and for a region whose cells weigh nothing.
class Validation {
 public:
  Validation(const ValidationOptions& options, const ValidationSetup& setup);

  // Collective over all ranks: replicas share the dates, model groups the cells. Every rank gets
  // the same result. All ranks leave together when one of them is asked to stop, cannot read its
  // data, finds values in them that are no numbers (data/fields/bad_input.h) or, where it forecasts
  // alone, meets another error: where ranks forecast together, that is thrown. A validation period
  // that has no truth for the whole rollout gives the loss of as many steps as it has truth for.
  // `loss` is that of the first dataset; those of further ones are added.
  ValidationResult run(const Forecaster& forecaster, const Loss& loss,
                       const ValidationCall& call = {}) const;

  // The names of all scores (train/scores/named_scores.h) of such validations. Local.
  std::vector<std::string> score_names() const;
  int64_t num_dates() const { return num_dates_; }
  const std::vector<int64_t>& lead_times_s() const { return lead_times_s_; }

 private:
  struct Sums;
  class Agreement;
  struct Date {  // a forecast to verify
    int64_t row = 0;
    int64_t steps = 0;  // model steps with truth, up to the longest lead time or rollout
  };
  struct ScoredRegion {
    std::string name;
    double share = 0.0;
    at::Tensor weights;  // (n, 1) fp64, sum over the cells of the region 1
  };
  // A dataset and what its figures need; setup_ keeps what it refers to.
  struct Scored {
    const data::SampleSource& source;
    const data::VariableTable& variables;
    data::NodeRange nodes;
    data::LoaderOptions loading;  // of these nodes
    const Loss* loss = nullptr;   // null: the one that run() is given
    NodeSlice loss_nodes;
    at::Tensor weights;  // (n, 1) fp64, sum over all cells 1
    OutputChain outputs;
    std::vector<ScoredRegion> regions;
  };
  // Describes what the forecasts of a validation have in common.
  struct Pass {
    const Forecaster& forecaster;
    const Loss& loss;
    int64_t rollout = 1;  // forecast steps of the loss
    int64_t needed = 1;   // forecast steps of a date with enough truth
  };
  static Scored scored(const FurtherValidation& dataset, at::Device device);
  // Dates that every dataset has inputs and truth for.
  std::vector<Date> candidates(int64_t most) const;
  Sums zero_sums() const;
  // The forecasts that each replica makes: all ranks take part in as many turns. False if they have
  // left, and `agreement` says why. Collective.
  bool run_turns(const Pass& pass, const ValidationCall& call, Agreement& agreement,
                 Sums& sums) const;
  // Forecasts one date, together with the other ranks of its sample. `between`: Forecaster::run().
  Sums sums_of_date(const std::vector<data::Batch>& batch, int64_t steps, const Pass& pass,
                    const std::function<void()>& between) const;
  // Returns what makes the figures of a date useless, if it is its data: input, variable, date, and
  // what to do; "" if they are sound.
  std::string fault_of_data(const Date& date, int64_t steps, const Sums& sums) const;
  // All but loss and rollout.
  ValidationResult result_of(const Sums& sums) const;
  std::vector<LeadTimeScores> scores_of(const Sums& sums, size_t dataset) const;
  // Scores of all cells or of a region, from a row of the sums.
  template <class Scores>
  void fill(const FieldSums& sums, int64_t row, int64_t num_dates, size_t dataset,
            Scores& scores) const;
  void sum_over_ranks(Sums& sums) const;
  // `valid`: 0 where an output was imputed, else 1, (1, 1, N, V_out); undefined: 1 everywhere.
  void add_errors(const ForecastStep& step, const at::Tensor& persistence, const at::Tensor& valid,
                  Sums& sums) const;

  ValidationSetup setup_;
  std::vector<Scored> datasets_;
  std::vector<int64_t> lead_times_s_;
  int64_t lead_steps_ = 0;           // forecast steps to the last lead time
  int64_t longest_steps_ = 0;        // that any date has truth for
  int64_t num_dates_ = 0;            // of all replicas
  std::vector<Date> dates_;          // of this replica
  std::vector<int64_t> turn_steps_;  // the most steps of any replica, by turn
};

}  // namespace aifs::train
