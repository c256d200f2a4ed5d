// SPDX-License-Identifier: Apache-2.0
// Scalars for MLflow, in its store of files, which `mlflow ui --backend-store-uri DIR` shows and
// `mlflow migrate-filestore` moves into a database. Many runs share a store:
//
//   <dir>/<experiment>/meta.yaml              its name
//   <dir>/<experiment>/<run>/meta.yaml        name, user, start, end and status of a run
//                            params/<key>     a value of the configuration
//                            tags/<key>
//                            metrics/<key>    lines "<milliseconds since 1970> <value> <step>"
//
// Source: the store of files of MLflow 3.17 (module mlflow.store.tracking.file_store).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/file_io.h"

namespace aifs::train {

// What a store is told of a run.
struct MlflowRun {
  fs::path store;          // folder
  std::string experiment;  // by its name
  fs::path run_dir;
  std::string config_json;  // effective configuration
  std::string program_version;
};

// Not thread-safe. One writer for a run: rank 0 writes.
class MlflowWriter {
 public:
  enum class Status { kRunning = 1, kFinished = 3, kFailed = 4, kKilled = 5 };

  // Creates what is missing of the store, and a run. A resumed one (`resume_step` of 0 or more)
  // goes on with the run that <run.dir>/mlflow.json names, from which later points are taken away.
  // Throws Error if any of it cannot be written.
  explicit MlflowWriter(const MlflowRun& run, int64_t resume_step = -1);
  // Flushes; a run that was not ended has failed.
  ~MlflowWriter();
  MlflowWriter(const MlflowWriter&) = delete;
  MlflowWriter& operator=(const MlflowWriter&) = delete;

  // Remembers one value until the next flush(). Letters that MLflow does not allow become "_".
  void add_scalar(const std::string& key, double value, int64_t step);
  // Appends what was remembered. Training must not stop for it: a failure loses these values, is
  // counted, and the first is logged as a warning. Never throws.
  void flush();
  // Flushes and says how the run has ended. Never throws.
  void end(Status status);

  const fs::path& folder() const { return folder_; }  // of the run
  int64_t num_failures() const { return num_failures_; }

 private:
  void write_meta(Status status, int64_t end_ms) const;
  void write_description() const;
  void note_failure(const std::string& what);

  MlflowRun run_;
  std::string experiment_id_, run_id_;
  int64_t start_ms_ = 0;
  fs::path folder_;
  std::map<std::string, std::string> pending_;
  int64_t num_failures_ = 0;
  bool ended_ = false;
};

}  // namespace aifs::train
