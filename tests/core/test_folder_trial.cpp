// SPDX-License-Identifier: Apache-2.0
// What cannot be had here (a quota, missing operations) is in test_missing_operations.cpp.
#include "core/folder_trial.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

int64_t num_entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

}  // namespace

TEST_CASE("a folder that can be written passes, whether it is there or not", "[folder_trial]") {
  const test::TemporaryFolder folder;
  REQUIRE_NOTHROW(check_writable(folder.path()));
  REQUIRE_NOTHROW(check_writable(folder.path() / "not" / "yet"));
  REQUIRE_NOTHROW(check_writable("not-yet-in-the-working-folder"));
  REQUIRE_NOTHROW(check_room(folder.path(), "a checkpoint", {1 << 20, 0, 7}));
  REQUIRE_NOTHROW(check_room(folder.path() / "not" / "yet", "a checkpoint", {}));
  REQUIRE(num_entries(folder.path()) == 0);
}

TEST_CASE("a folder that cannot be written or made is named with the reason", "[folder_trial]") {
  REQUIRE_THROWS_WITH(check_writable("/proc/runs"), ContainsSubstring("'/proc'"));
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "file", "");
  REQUIRE_THROWS_WITH(check_writable(folder.path() / "file"), ContainsSubstring("in the way"));
  REQUIRE_THROWS_WITH(check_writable(folder.path() / "file" / "r"),
                      ContainsSubstring("file' is a file"));
  fs::create_symlink("nowhere", folder.path() / "dangling");
  REQUIRE_THROWS_WITH(check_writable(folder.path() / "dangling"),
                      ContainsSubstring("is a link to 'nowhere', which does not exist"));
  REQUIRE_THROWS_WITH(check_room(folder.path() / "dangling", "a checkpoint", {}),
                      ContainsSubstring("is a link to 'nowhere'"));
  if (::geteuid() == 0) return;  // may write everywhere
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  REQUIRE_THROWS_WITH(check_writable(folder.path()), ContainsSubstring("Permission denied"));
  REQUIRE_THROWS_WITH(missing_operations(folder.path()), ContainsSubstring("Permission denied"));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST_CASE("a limit of file sizes counts for each file", "[folder_trial]") {
  const test::TemporaryFolder folder;
  const test::FileSizeLimit limit(1 << 20);
  REQUIRE_NOTHROW(check_room(folder.path(), "a checkpoint", {1 << 20, 1 << 20}));
  REQUIRE_THROWS_WITH(check_room(folder.path(), "a checkpoint", {(1 << 20) + 1}),
                      ContainsSubstring("at most 1048576 bytes (1.0 MiB)") &&
                          ContainsSubstring("one has 1048577 bytes") &&
                          ContainsSubstring(folder.path().string()));
  REQUIRE(num_entries(folder.path()) == 0);
}

TEST_CASE("a disk without room is told by what is needed and what is free", "[folder_trial]") {
  const test::TemporaryFolder folder;
  constexpr int64_t kPetabyte = int64_t{1} << 50;
  REQUIRE_THROWS_WITH(
      check_room(folder.path(), "a checkpoint", {kPetabyte, 8 * kPetabyte}),
      ContainsSubstring("a checkpoint takes 10133099161583616 bytes (9216.0 TiB)") &&
          ContainsSubstring(" are free"));
  REQUIRE(num_entries(folder.path()) == 0);
}
