// SPDX-License-Identifier: Apache-2.0
// Figures of a run as CSV (RFC 4180), for spreadsheets and pandas: a head, then a row for each step
// or score. Writing never stops a run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "train/output/appended_text.h"

namespace aifs::train {

class CsvLines {
 public:
  // Appends to `path`; the first of `columns` is "step". On a resumed run the rows of steps after
  // `resume_step` are removed first; -1 starts an empty file. A file of other columns, of another
  // version of the program, is renamed to <name>.before-step-<n>.csv. Never throws.
  CsvLines(const fs::path& path, const std::vector<std::string>& columns, int64_t resume_step);

  // Appends the members of an object that are columns; those that it lacks, and numbers that are
  // not finite, stay empty. Written with the next flush().
  void add(const nlohmann::ordered_json& row);
  // Never throws.
  void flush();

  int64_t num_failures() const { return file_.num_failures(); }

 private:
  AppendedText file_;
  std::vector<std::string> columns_;
  std::string head_, pending_;
};

}  // namespace aifs::train
