// SPDX-License-Identifier: Apache-2.0
// Times the decoding of a configuration's training data on a GPU, step by step: files to
// page-locked memory, encoded bytes to the device, LZ4 streams, fields. Compares the values with
// those of the reading threads, bit by bit.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/run/run_config.h"

namespace aifs::bench {

struct DecodeOptions {
  app::RunConfig config;
  int64_t batches = 50;  // the first of an epoch; fewer if it has fewer
  c10::Device device = c10::kCPU;
  std::vector<int64_t> threads = {1, 2};  // that read files, one pass each
};

// Returns one result a pass, also given to `visit` when it is there:
//   "check"     samples and whether all of them are `identical` to what the reading threads give
//   "date", "sample"  medians over one date, or all dates of one sample, at a time: read_ms (files
//               to page-locked memory, by `threads`), parse_ms (table of streams, on the host),
//               copy_ms (encoded bytes to the device), lz4_ms, fields_ms; dates, encoded_mib,
//               decoded_mib, streams and raw_streams of the last one
//   "pipeline"  one host thread reads the next sample (with `threads` - 1 helpers) while a stream
//   of
//               its own decodes the one before: samples, seconds, samples_s, read_share of the time
// On the CPU the device steps are those of one thread, for checks. Throws ConfigError for options
// that the device cannot follow (see data::RowDecoder), DataError for what is wrong with the data.
nlohmann::ordered_json time_decoding(
    const DecodeOptions& options, const std::function<void(const nlohmann::ordered_json&)>& visit);

// Returns a result in one line, for people.
std::string decoding_text(const nlohmann::ordered_json& result);

}  // namespace aifs::bench
