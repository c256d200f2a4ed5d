// SPDX-License-Identifier: Apache-2.0
#include "data/sources/mask_file.h"

#include <string>

#include "core/check.h"
#include "core/file_io.h"

namespace aifs::data {

std::vector<bool> read_mask(const std::filesystem::path& file, int64_t num_cells) {
  const auto fail = [&](const std::string& what) {
    throw DataError(concat("'", file.string(), "' ", what),
                    concat("a mask is written by numpy.save of ", num_cells, " booleans"));
  };
  const std::string bytes = read_file(file);
  constexpr size_t kPrefix = 10;  // magic, version, length of the header of version 1
  if (bytes.size() < kPrefix || bytes.compare(0, 6, "\x93NUMPY") != 0) fail("is no .npy file");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(bytes[at])); };
  if (byte(6) != 1) fail(concat("is of version ", byte(6), " of the format, not 1"));
  const size_t begin = kPrefix + byte(8) + 256 * byte(9);
  if (begin > bytes.size()) fail("is cut short");
  const std::string header = bytes.substr(kPrefix, begin - kPrefix);
  if (header.find("'|b1'") == std::string::npos && header.find("'?'") == std::string::npos)
    fail("does not hold booleans");
  const auto count = static_cast<int64_t>(bytes.size() - begin);
  if (count != num_cells) fail(concat("has ", count, " values for ", num_cells, " cells"));
  std::vector<bool> mask;
  for (size_t i = begin; i < bytes.size(); ++i)
    mask.push_back(bytes[i] != 0);
  return mask;
}

}  // namespace aifs::data
