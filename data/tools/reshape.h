// SPDX-License-Identifier: Apache-2.0
// Writes an Anemoi dataset again, with other chunks, codec or format, bit for bit.
//
// While it is written the folder holds "_copy", so that readers take it for unfinished, and in it
// what was asked for and a line for each file that is complete, with a checksum of its values. A
// copy that was interrupted goes on where it was. At the end every file is read back and compared
// with these checksums; one that differs is written again once.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/fields/work_threads.h"
#include "data/zarr/compression.h"
#include "data/zarr/store.h"

namespace aifs::data {

struct ReshapeOptions {
  std::optional<int> format = {};            // 2 or 3; none: that of the store
  int64_t dates = 0, cells = 0;              // of a chunk; 0: as they are
  int64_t cell_chunks = 0;                   // chunks along the cells; 0: by `cells`
  int64_t shard_dates = 0, shard_cells = 0;  // format 3: of a shard; 0: no shards, or all cells
  std::optional<zarr::Compression> compression = {};  // none: that of the store
  bool consolidated = false;                          // one file with the metadata of all arrays
  int64_t threads = 0;                                // 0: as many as there are cores
};

struct ReshapeResult {
  int64_t files = 0, bytes = 0;  // of the fields
  int64_t reused = 0;            // files that were there from an interrupted copy
  int64_t rewritten = 0;         // files that were not what they should be when they were read back
};

// Throws ConfigError where the options do not fit the store, or `to` is something else than nothing
// or a copy of the same that was interrupted; DataError for damaged data, Error.
ReshapeResult reshape_store(const std::shared_ptr<const zarr::Store>& store, const std::string& to,
                            const ReshapeOptions& options, ProgressSink* progress);

}  // namespace aifs::data
