// SPDX-License-Identifier: Apache-2.0
// Writes whole chunks of the variables of a netCDF-4 file that several threads have compressed. The
// netCDF library compresses in the thread that writes, one chunk after another: for fields of a
// fine grid that takes fifty times as long as a step of a forecast. The file is HDF5, whose library
// takes chunks as they are stored; readers see no difference.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::forecast {

class ChunkWriter {
 public:
  virtual ~ChunkWriter() = default;

  // A chunk of a variable, by the index of its first element.
  struct Chunk {
    size_t variable = 0;
    std::vector<size_t> start;
    std::span<const float> values;
  };
  // Compresses chunks on several threads and writes them in order. Throws Error.
  virtual void write(const std::vector<Chunk>& chunks) = 0;
  // Makes what was written outlive the process. Throws Error.
  virtual void sync() = 0;
  // Closes the file. Throws Error.
  virtual void finish() = 0;
};

// Opens a netCDF-4 file that no one else has open, whose `variables` are floats with the filters
// shuffle and deflate of this `level`. Null where the program was built without HDF5. Throws Error.
std::unique_ptr<ChunkWriter> open_chunks(const fs::path& file,
                                         const std::vector<std::string>& variables, int level);

}  // namespace aifs::forecast
