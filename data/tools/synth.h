// SPDX-License-Identifier: Apache-2.0
// Writes Anemoi datasets of any size, to prove and to measure readers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/fields/work_threads.h"
#include "data/zarr/compression.h"

namespace aifs::data {

// Position: tools/position_values.h. Waves: smooth fields with noise in the low bits, which
// compress about as real ones do and are prescribed functions of date, variable and cell.
enum class SynthValues { kPosition, kWaves };

struct SynthOptions {
  std::vector<double> latitudes_deg, longitudes_deg;  // of the cells
  std::vector<int64_t> field_shape;                   // empty: one dimension
  std::string resolution;                             // name of the grid; empty: none
  std::vector<std::string> variables;                 // empty: `num_variables` of usual names
  int64_t num_variables = 10;
  int64_t num_dates = 20, members = 1;
  int64_t start_s = 1577836800;  // 2020-01-01
  int64_t frequency_s = 21600;
  SynthValues values = SynthValues::kPosition;
  int format = 2;
  int64_t dates = 1, cell_chunks = 1;  // dates of a chunk, chunks along the cells
  int64_t shard_dates = 0;             // format 3: dates of a shard; 0: no shards
  zarr::Compression compression = {};
  int64_t threads = 0;  // 0: as many as there are cores
};

// Writes a new dataset with statistics of all of its fields and of their tendencies over one step.
// Throws ConfigError if something is in its place or options do not fit, Error.
void write_synthetic(const std::string& to, const SynthOptions& options, ProgressSink* progress);

// One field of one date and member, for readers that want to know what they should read. `out`:
// cells.
void synthetic_field(const SynthOptions& options, int64_t date, int64_t variable, int64_t member,
                     std::span<float> out);

// Names such as AIFS uses, then x1, x2 ...
std::vector<std::string> usual_variables(int64_t count);

}  // namespace aifs::data
