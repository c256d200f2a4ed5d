// SPDX-License-Identifier: Apache-2.0
#include "core/temporary_folder.h"

#include <optional>

#include "core/file_io.h"
#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("temporary folders are several, and go with all that is in them", "[temporary_folder]") {
  std::optional<TemporaryFolder> folder(std::in_place);
  const TemporaryFolder other;
  const fs::path path = folder->path();
  REQUIRE(path != other.path());
  REQUIRE(fs::is_directory(path));
  fs::create_directory(path / "inner");
  write_file_atomic(path / "inner" / "file", "text");
  folder.reset();
  REQUIRE_FALSE(fs::exists(path));
  REQUIRE(fs::is_directory(other.path()));
}
