// SPDX-License-Identifier: Apache-2.0
// Figures of a run as JSON Lines: metrics.jsonl (one object per optimiser step) and
// validation.jsonl (one per validation). Writing never stops a run: a failure is reported once and
// tried again with the next line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/file_io.h"

namespace aifs::train {

class JsonLines {
 public:
  // Appends to `path`. On a resumed run the lines of steps after `resume_step` are removed first
  // (they will be written again); -1 starts an empty file.
  JsonLines(fs::path path, int64_t resume_step);

  // `object` must have a "step". Flushed at once. Never throws.
  void write(const nlohmann::ordered_json& object);
  int64_t num_failures() const { return num_failures_; }
  // The step of the last line that was kept of an earlier part of the run, -1 if it has none;
  // nothing if there was no file to go on with.
  std::optional<int64_t> last_step() const { return last_step_; }

 private:
  fs::path path_;
  int64_t num_failures_ = 0;
  std::optional<int64_t> last_step_;
};

}  // namespace aifs::train
