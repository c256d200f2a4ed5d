// SPDX-License-Identifier: Apache-2.0
// How fast a dataset is read as the trainer reads it: its readers, threads, read-ahead, normaliser,
// order of samples and copies to the device, with nothing that computes behind; beside what the
// same chunks cost when they are only read and decoded.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/run/data_parts.h"
#include "app/run/run_config.h"
#include "data/loader/data_loader.h"

namespace aifs::app {

// The first `most` batches of a run with this configuration on one rank, one forecast step long.
// Throws DataError if there is no training sample.
std::vector<data::BatchRequest> first_requests(const RunConfig& config, const DataParts& parts,
                                               size_t most);

struct ReadRateOptions {
  RunConfig config;
  int64_t batches = 50;  // the first of an epoch; fewer if it has fewer
  c10::Device device = c10::kCPU;
  std::vector<int64_t> threads = {};  // of readers, one pass each; none: data.threads
  double cells = 1.0;                 // share of the cells that is read, from the first one on
  bool cold = true;                   // a pass from disk, too
};

// One result a pass, also given to `visit` when it is there:
//   "bare"  whole chunks of a few dates read and decoded by threads that share nothing and do no
//           more: threads, date_ms, read_ms and decode_ms of a thread for a date; before each
//           "warm" pass. Not for data that are no files, nor for several threads where their chunks
//           would take more than 8 GiB
//   "cold"  the batches read after their files were dropped from the page cache
//   "warm"  read again, once for each number of threads
// Passes have threads, samples, dates, seconds, samples_s, mb_s (of fp32 fields), stored_mb_s (of
// what files give), busy (share of the threads' time), thread_ms (of all threads for a date),
// resident (share of the files in the page cache before) and, after "bare", share = bare date_ms /
// thread_ms and share_of_decode = bare decode_ms / thread_ms, of the last "bare".
// Throws ConfigError, and DataError for what is wrong with the data.
nlohmann::ordered_json time_reading(
    const ReadRateOptions& options,
    const std::function<void(const nlohmann::ordered_json&)>& visit);

// A result in one line, for people.
std::string reading_text(const nlohmann::ordered_json& result);

}  // namespace aifs::app
