// SPDX-License-Identifier: Apache-2.0
// A file of figures that grows while a run goes on. Writing never stops a run: what cannot be
// written is lost, counted, and reported once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/file_io.h"

namespace aifs::train {

class AppendedText {
 public:
  explicit AppendedText(fs::path path) : path_(std::move(path)) {}

  // Appends all of the text or nothing of it, behind `header` in a new or empty file. Never throws.
  void append(std::string_view text, std::string_view header = {});
  // Counts a failure that somebody else has met with the file, and reports the first. Never throws.
  void note_failure(const std::string& reason);

  const fs::path& path() const { return path_; }
  int64_t num_failures() const { return num_failures_; }

 private:
  fs::path path_;
  int64_t num_failures_ = 0;
};

}  // namespace aifs::train
