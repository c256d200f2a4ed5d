// SPDX-License-Identifier: Apache-2.0
#include "data/sources/mask_file.h"

#include <fstream>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;

namespace {

std::string npy(const std::string& type, const std::string& values) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (4,), }";
  header.resize(117, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += {'\x01', '\0', static_cast<char>(header.size()), '\0'};
  return bytes + header + values;
}

}  // namespace

TEST_CASE("a mask holds a boolean per cell", "[mask_file]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "m.npy";
  const auto write = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  };
  write(npy("|b1", std::string("\1\0\1\1", 4)));
  REQUIRE(read_mask(file, 4) == std::vector<bool>{true, false, true, true});
  REQUIRE_THROWS_WITH(read_mask(file, 5),
                      ContainsSubstring("m.npy") && ContainsSubstring("4 values for 5 cells"));
  write(npy("<f4", std::string(16, '\0')));
  REQUIRE_THROWS_WITH(read_mask(file, 4), ContainsSubstring("booleans"));
  for (const std::string& bytes : {std::string(), std::string("hello world"),
                                   npy("|b1", "").substr(0, 40), std::string("\x93NUMPY\2")}) {
    write(bytes);
    REQUIRE_THROWS_AS(read_mask(file, 4), DataError);
  }
  REQUIRE_THROWS_AS(read_mask(folder.path() / "none.npy", 4), DataError);
}
