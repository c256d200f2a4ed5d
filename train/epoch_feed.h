// SPDX-License-Identifier: Apache-2.0
// Gives the trainer its batches: one feed for all epochs, so that the first batches of an
// epoch are read while the one before it ends.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "data/loader/joint_feed.h"
#include "data/loader/sampler.h"
#include "parallel/process_mesh.h"
#include "train/epoch_requests.h"
#include "train/feed_watch.h"
#include "train/step_figures.h"

namespace aifs::train {

// One of the datasets of a run, of the same dates as the others, with cells and variables of its
// own.
struct TrainingDataset {
  std::string name;  // for messages
  const data::SampleSource& source;
  const data::VariableTable& variables;
  data::LoaderOptions loading;
  LossPtr loss;
  NodeSlice loss_nodes = {};    // this rank's nodes among those of its model group
  at::Tensor output_mask = {};  // (n) bool of this rank's nodes; none: the network decides all

  const data::DatasetInfo& info() const { return source.dataset->info(); }
};

// The parts that the feed reads; all outlive it.
struct EpochFeedSetup {
  const std::vector<TrainingDataset>& datasets;
  Window window;
  data::SamplerOptions sampling;
  TrainOptions train;
  const parallel::ProcessMesh& mesh;
  at::Device device = at::kCPU;
  bool resident_data = false;  // every batch is the first one, read once
};

class EpochFeed {
 public:
  explicit EpochFeed(const EpochFeedSetup& setup) : setup_(setup) {}

  // Throws DataError if no sample is long enough for the longest rollout of the run.
  void check_samples() const;
  // Returns the number of batches that are left of the epoch at hand; the feed has them, and those
  // of the next epoch. Throws on all ranks unless those that share a sample read the same dates.
  // Collective over all ranks.
  int64_t begin_epoch(const LoopState& state);
  // Stops reading ahead.
  void end();

  // Reads the next batch, which is at hand then. Data that cannot be read, or a wish to stop while
  // waiting for them, are noted in the figures; a batch of zeros takes the place of the missing
  // one, so that this rank can take part in what all ranks do before they hear of it.
  void next(StepFigures& figures, const LoopState& state, const data::GiveUp& give_up);
  // Reads the batch that began at these rows again.
  void read_again(const std::vector<int64_t>& anchors, int64_t rollout);
  const Batches& batch() const { return batch_; }

  // The first batch of the epoch at hand on the device, long enough for `rollout` forecast steps.
  Batches first_batch(const LoopState& state, int64_t rollout) const;

  // Seconds spent waiting for data since the last call.
  double take_wait_s();
  // Returns what there is to say if reading does not keep up: once, on the main rank; else "".
  std::string watch(const StepFigures& figures);

 private:
  // `start`: where the epoch begins in this process.
  std::vector<data::BatchRequest> requests_of_epoch(const LoopState& start) const;
  void check_same_dates(const LoopState& start,
                        const std::vector<data::BatchRequest>& requests) const;
  // Gives the feed the batches of the next epoch, if there will be one: reading goes on while an
  // epoch ends, and stops where training does. Collective.
  void add_next_epoch();
  void zeros_instead(int64_t samples, int64_t rollout);
  std::vector<data::FeedSource> sources() const;
  std::vector<const data::DatasetInfo*> infos() const;

  EpochFeedSetup setup_;
  std::unique_ptr<data::JointFeed> feed_;  // none with resident data
  LoopState next_fed_;                     // the first epoch that the feed has not got
  std::deque<int64_t> fed_epochs_;   // batches of the epochs that it has and that have not begun
  std::deque<int64_t> fed_samples_;  // of the batches that it has and that were not taken
  double waited_before_s_ = 0.0;     // by the feed, until the step at hand
  Batches batch_;                    // the one at hand
  Batches resident_;                 // the only one, with resident data
  std::optional<FeedWatch> watch_;
};

}  // namespace aifs::train
