// SPDX-License-Identifier: Apache-2.0
// A mask of cells in a file of numpy's .npy format: booleans, true stays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace aifs::data {

// Throws DataError naming the file if it does not hold `num_cells` booleans.
std::vector<bool> read_mask(const std::filesystem::path& file, int64_t num_cells);

}  // namespace aifs::data
