// SPDX-License-Identifier: Apache-2.0
// How fast a dataset is read as the trainer reads it: its readers, threads, read-ahead, normaliser,
// order of samples and copies to the device, with nothing that computes behind.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "app/run_config.h"

namespace aifs::bench {

struct DataBenchOptions {
  app::RunConfig config;
  int64_t batches = 50;  // the first of an epoch; fewer if it has fewer
  c10::Device device = c10::kCPU;
};

// Reads the same batches from disk ("cold") and again from memory ("warm"). One result each, also
// given to `visit` when it is there: {case, samples, seconds, samples_s, mb_s (of fp32 fields),
// stored_mb_s (of what files give), decoding (share of the readers' time that is not in files),
// busy (share of the threads' time in readers), resident (share of the dataset's files in the page
// cache before)}. Data that are no files are read warm alone.
// Throws ConfigError, and DataError for what is wrong with the data.
nlohmann::ordered_json time_reading(
    const DataBenchOptions& options,
    const std::function<void(const nlohmann::ordered_json&)>& visit);

}  // namespace aifs::bench
