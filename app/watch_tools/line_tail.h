// SPDX-License-Identifier: Apache-2.0
// The lines of a file that another process appends to, as they come. Reading leaves no trace: no
// file is made, locked or changed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::app {

class LineTail {
 public:
  explicit LineTail(fs::path path) : path_(std::move(path)) {}

  // Returns the whole lines since the last call, without their ends; the last one waits until it
  // has an end. None if there is no such file. Throws DataError naming a file that cannot be read.
  std::vector<std::string> next();

  // True if the lines of the last next() are the first of the file: it is new, was replaced or cut.
  bool is_at_start() const { return at_start_; }
  // When the file was last written to, in seconds since 1970; 0: there is none.
  double written_s() const { return written_s_; }

 private:
  fs::path path_;
  std::string rest_;  // the beginning of a line
  off_t offset_ = 0;
  dev_t device_ = 0;
  ino_t number_ = 0;
  bool at_start_ = false;
  double written_s_ = 0.0;
};

}  // namespace aifs::app
