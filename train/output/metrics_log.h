// SPDX-License-Identifier: Apache-2.0
// Figures of a run as JSON Lines: metrics.jsonl (one object per optimiser step) and
// validation.jsonl (one per validation). Writing never stops a run: a failure is reported once and
// tried again with the next line.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "train/output/appended_text.h"

namespace aifs::train {

class JsonLines {
 public:
  // Is told the lines of a file that is there, and whether they stay.
  using FormerLine = std::function<void(const nlohmann::ordered_json& line, bool stays)>;

  // Appends to `path`. On a resumed run the lines of steps after `resume_step` are removed first
  // (they will be written again); -1 starts an empty file.
  JsonLines(fs::path path, int64_t resume_step, const FormerLine& former = {});

  // `object` must have a "step". Flushed at once. Never throws.
  void write(const nlohmann::ordered_json& object);
  int64_t num_failures() const { return file_.num_failures(); }
  // The step of the last line that was kept of an earlier part of the run, -1 if it has none;
  // nothing if there was no file to go on with.
  std::optional<int64_t> last_step() const { return last_step_; }

 private:
  AppendedText file_;
  std::optional<int64_t> last_step_;
};

}  // namespace aifs::train
