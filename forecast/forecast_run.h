// SPDX-License-Identifier: Apache-2.0
// One forecast: from the states of a dataset step by step to the files of its fields, which are
// written while the next step runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/loader/batch.h"
#include "data/transforms/post_processor.h"
#include "forecast/forecast_file.h"
#include "forecast/restart.h"
#include "parallel/process_mesh.h"
#include "train/rollout.h"

namespace aifs::forecast {

// One dataset of a network; references outlive the run.
struct ForecastDataset {
  const data::SampleSource& source;  // of the states
  const data::VariableTable& variables;
  data::PostProcessor post_processor = {};
  data::LoaderOptions loading = {.threads = 1};  // of this rank's cells
  parallel::Counts cells_per_rank = {};          // of the ranks that share the forecast
  // (N) bool on the CPU, of the cells of all ranks: where it is false, prognostic variables come
  // from the dataset, and nothing is written. Undefined: all true.
  at::Tensor output_mask = {};
};

struct ForecastSetup {
  std::vector<ForecastDataset> datasets;  // in the order of the network
  train::Window window;
  int64_t timestep_s = 0;
  const parallel::ProcessMesh& mesh;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  uint64_t seed = 0;  // of ensembles; with the date
};

// How a forecast can be interrupted, and go on.
struct ForecastRestarts {
  fs::path path = {};         // of the restart file; empty: there is none
  std::string identity = {};  // of the forecast
  double every_s = 60.0;      // time between two restart files; 0: one after each step
  std::function<bool()> should_stop = {};
  std::optional<Restart> from = {};  // files go on behind it
};

struct ForecastRequest {
  int64_t start_s = 0;
  int64_t lead_time_s = 0;                 // a multiple of the timestep
  std::vector<std::string> constant = {};  // variables that are the same at all dates
  ForecastRestarts restarts = {};
};

// True for forecasts that can go on from a restart file: of one rank and one member, without noise.
bool can_restart(const train::Forecaster& forecaster, const ForecastSetup& setup,
                 int64_t num_members);

// Describes where the time of a forecast went, in seconds; the rest is the network.
struct ForecastTimes {
  double total = 0.0;
  double data = 0.0;   // waiting for states and forcings
  double files = 0.0;  // waiting for files
};

// Positions among the outputs of the variables that a user names; all if none is. Throws
// ConfigError (path "--variables") for one that is no output, with near names.
std::vector<int64_t> chosen_outputs(const data::VariableTable& variables,
                                    const std::vector<std::string>& names);

// Numbers of the cells that are written of a dataset, all or those of its mask.
std::vector<int64_t> written_cells(const ForecastDataset& dataset);

// Makes a forecast and gives its fields to `files`, one for each dataset: of those of `outputs`
// (positions among the outputs) in that order. Files are null on ranks that do not write; of the
// ranks that share a forecast one may have them (writes_forecasts()). Throws InterruptedError once
// it should stop, behind a restart file. Values at cells where a
// variable was imputed at the first input date are NaN, as in Anemoi. Throws DataError. Collective
// over the ranks that share the forecast.
ForecastTimes run_forecast(const train::Forecaster& forecaster, const ForecastSetup& setup,
                           const ForecastRequest& request,
                           const std::vector<std::shared_ptr<ForecastFile>>& files,
                           const std::vector<std::vector<int64_t>>& outputs);

// Throws DataError as run_forecast() would for what the datasets lack, before anything is made.
// Local; reads no fields.
void check_request(const ForecastSetup& setup, const ForecastRequest& request);

// True for the rank of a replica that has its forecasts at hand.
bool writes_forecasts(const parallel::ProcessMesh& mesh);

}  // namespace aifs::forecast
