// SPDX-License-Identifier: Apache-2.0
// Finds out, keeps and decides what follows when a number of a step is not finite.
#pragma once

#include <optional>
#include <string>

#include "data/fields/bad_input.h"
#include "train/epoch_feed.h"

namespace aifs::train {

// The parts that a report looks at; all outlive the policy.
struct NonfiniteSetup {
  const TrainingStep& step;
  const model::ParameterSet& parameters;
  const std::vector<TrainingDataset>& datasets;
  Window window;
  const parallel::ProcessMesh& mesh;
  fs::path run_dir;  // batches are dumped here
  OnNonfinite choice = OnNonfinite::kStop;
  int64_t max_skipped_steps = 0;
};

class NonfinitePolicy {
 public:
  explicit NonfinitePolicy(const NonfiniteSetup& setup) : setup_(setup) {}

  // Says what is not finite and where, and writes the batch to a folder. `state` is that of the
  // step at hand, and `batch` its last one. All ranks of a replica call it, or none: the network
  // runs again, with all values there (ParameterShards::fetch_all()).
  NonfiniteReport describe(const std::string& what, const Batches& batch,
                           const StepFigures& figures, const LoopState& state) const;
  // True if the step is left out, on all ranks alike; then it says so in the log.
  bool skips(const NonfiniteReport& report) const;
  // After each step.
  void note(bool updated) { skipped_in_a_row_ = updated ? 0 : skipped_in_a_row_ + 1; }

 private:
  // The first value of the batch, as it is stored, that no network can work with.
  std::optional<data::BadInput> bad_input(const Batches& batch, int64_t rollout) const;
  std::string find(const Batches& batch, const StepFigures& figures) const;
  // Name of a dataset where there are several, for messages: " of 'era5'".
  std::string of_dataset(size_t dataset) const;
  // Writes the batch with the report so far, and says where.
  std::string dump(const Batches& batch, const std::string& text, int64_t step) const;

  NonfiniteSetup setup_;
  int64_t skipped_in_a_row_ = 0;
};

// The steps of the last checkpoints before and after a step that was not finite; -1: there is none.
struct SavedSteps {
  int64_t before = -1, after = -1;
};
// Suggests what to do about weights that gave such a step, of this number from 0.
std::string way_out(const SavedSteps& saved, int64_t step);

}  // namespace aifs::train
