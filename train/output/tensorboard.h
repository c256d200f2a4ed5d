// SPDX-License-Identifier: Apache-2.0
// Scalars for TensorBoard, as an event file: TFRecords that hold protobuf messages of type Event,
// written by hand because only five of their fields are needed.
//
//   record  length (u64), masked CRC32C of the length, message, masked CRC32C of the message
//   Event   wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5,
//           session_log = 7 with status = 1 (enum; 1 is START)
//
// A reader stops at the first damaged record. A record that could be written only in part is
// therefore cut off again, and everything that comes later stays readable.
//
// Source: tensorflow/core/lib/io/record_writer.h, core/util/event.proto, framework/summary.proto.
#pragma once

#include <cstdint>
#include <string>

#include "train/output/appended_text.h"

namespace aifs::train {

// Not thread-safe. One writer per file: rank 0 writes.
class TensorBoardWriter {
 public:
  // Creates the folder and, in it, events.out.tfevents.<seconds since 1970>.<host>.<process id>.
  // With a `resume_step` readers are told to forget what earlier files say of later steps.
  // Throws Error if either cannot be written.
  explicit TensorBoardWriter(const fs::path& folder, int64_t resume_step = -1);
  // Flushes.
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  // Remembers one value, rounded to fp32, until the next flush().
  void add_scalar(const std::string& tag, double value, int64_t step);

  // Appends what was remembered to the file, where readers see it at once. Training must not stop
  // for it: a failure (disk full, folder removed) loses these values, is counted, and the first is
  // logged as a warning; the next flush tries again.
  void flush();

  const fs::path& path() const { return file_.path(); }
  // Number of flushes that failed.
  int64_t num_failures() const { return file_.num_failures(); }

 private:
  AppendedText file_;
  std::string pending_;  // whole records
};

}  // namespace aifs::train
