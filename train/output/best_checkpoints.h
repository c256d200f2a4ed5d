// SPDX-License-Identifier: Apache-2.0
// Which checkpoints of a run have the best scores ("checkpoint.keep_best"). In the folder of the
// checkpoints, best.json lists them with their values, and `best` names the best one as `latest`
// does the newest.
#pragma once

#include <cstdint>
#include <vector>

#include "core/file_io.h"
#include "train/scores/score_choice.h"

namespace aifs::train {

// On the main rank of a run.
class BestCheckpoints {
 public:
  // Goes on with the list of an earlier part of the run, up to `resume_step` (-1: a new run); one
  // of another score, and checkpoints that are not there any more, are forgotten. Never throws: a
  // list that cannot be read is reported, and begun anew.
  BestCheckpoints(const fs::path& folder, const KeepBestOptions& options, int64_t resume_step);

  // True if a checkpoint with this score is among the best so far. Of equal ones the first counts.
  bool would_keep(double score) const;
  // Adds the checkpoint of a step, which is there, and writes the files; the worst one leaves the
  // list if it is too long. Training must not stop for it: a failure is reported. Never throws.
  void add(int64_t step, double score);
  // How many of the newest are kept, where `keep` is asked for: all where it is not known which of
  // them are the best.
  int64_t keep_of(int64_t keep) const { return is_lost_ ? 0 : keep; }
  // The steps of those to keep, the best first.
  std::vector<int64_t> steps() const;

 private:
  struct Kept {
    int64_t step = 0;
    double score = 0.0;
  };
  void read(int64_t resume_step);
  void write() const;
  void shorten();

  fs::path folder_;
  KeepBestOptions options_;
  std::vector<Kept> kept_;  // the best first
  bool is_lost_ = false;    // the list of an earlier part of the run could not be read
};

}  // namespace aifs::train
