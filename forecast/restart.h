// SPDX-License-Identifier: Apache-2.0
// What a forecast that was interrupted goes on from: the inputs of its next step, and how far each
// of its files has come.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::forecast {

struct Restart {
  int64_t steps = 0;                           // that are done
  std::vector<std::string> files;              // what ForecastFile::keep() said, of each dataset
  std::vector<std::vector<std::byte>> inputs;  // of the next step, of each dataset, as they lie in
                                               // memory
};

// Replaces the file. Throws Error.
void write_restart(const fs::path& path, const std::string& identity, const Restart& restart);

// Nothing where there is no file, or one of another identity. Throws DataError for a damaged one.
std::optional<Restart> read_restart(const fs::path& path, const std::string& identity);

}  // namespace aifs::forecast
