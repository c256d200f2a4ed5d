// SPDX-License-Identifier: Apache-2.0
// Files on file systems that lack operations: what can be done without is done without.
#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/missing_operations.h"
#include "tests/support/paths.h"

using namespace aifs;
using test::MissingOperations;
using test::WithoutOperations;

namespace {

int64_t num_entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

}  // namespace

TEST_CASE("files are written where they cannot be flushed", "[missing_operations]") {
  const int error = GENERATE(EINVAL, EOPNOTSUPP, ENOSYS, EBADF);
  CAPTURE(error);
  const test::TemporaryFolder folder;
  const WithoutOperations without({.flush_file = error, .flush_folder = error});
  write_file_atomic(folder.path() / "a", "first");
  write_file_atomic(folder.path() / "a", "second");
  REQUIRE(read_file(folder.path() / "a") == "second");
  REQUIRE_NOTHROW(sync_to_disk(folder.path() / "a"));
  REQUIRE_NOTHROW(sync_to_disk(folder.path()));
  const float number = 2.5F;
  write_safetensors(folder.path() / "t", {{"x", DType::kF32, {1}, &number}});
  REQUIRE(SafetensorsFile(folder.path() / "t").doubles("x") == std::vector<double>{2.5});
  REQUIRE(num_entries(folder.path()) == 2);
}

TEST_CASE("a flush that fails for another reason is an error and leaves nothing",
          "[missing_operations]") {
  const int error = GENERATE(EIO, ENOSPC, EDQUOT);
  const test::TemporaryFolder folder;
  const WithoutOperations without({.flush_file = error, .flush_folder = error});
  REQUIRE_THROWS_WITH(write_file_atomic(folder.path() / "a", "text"),
                      ContainsSubstring("cannot flush"));
  const float number = 2.5F;
  REQUIRE_THROWS_AS(write_safetensors(folder.path() / "t", {{"x", DType::kF32, {1}, &number}}),
                    Error);
  REQUIRE_THROWS_AS(sync_to_disk(folder.path()), Error);
  REQUIRE(num_entries(folder.path()) == 0);
}

TEST_CASE("files are replaced where they cannot be renamed", "[missing_operations]") {
  const test::TemporaryFolder folder;
  const auto missing =
      GENERATE(MissingOperations{.rename_file = ENOSYS}, MissingOperations{.rename_file = EXDEV},
               MissingOperations{.rename_over = EEXIST});
  const WithoutOperations without(missing);
  const std::string large(3 << 20, 'x');  // several pieces
  for (const std::string& content : {std::string("first"), large, std::string("third")}) {
    write_file_atomic(folder.path() / "a", content);
    REQUIRE(read_file(folder.path() / "a") == content);
  }
  REQUIRE(num_entries(folder.path()) == 1);
}

TEST_CASE("a rename that fails for another reason is an error", "[missing_operations]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "one");
  const WithoutOperations without({.rename_file = EIO, .rename_folder = EACCES});
  REQUIRE_THROWS_WITH(write_file_atomic(folder.path() / "a", ""),
                      ContainsSubstring("cannot rename"));
  REQUIRE_THROWS_WITH(rename_folder(folder.path() / "one", folder.path() / "two"),
                      ContainsSubstring("Permission denied"));
}

TEST_CASE("whether folders can be renamed is told", "[missing_operations]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "one");
  {
    const int error = GENERATE(ENOSYS, EXDEV, EMFILE);
    const WithoutOperations without({.rename_folder = error});
    REQUIRE_FALSE(rename_folder(folder.path() / "one", folder.path() / "two"));
  }
  REQUIRE(rename_folder(folder.path() / "one", folder.path() / "two"));
  REQUIRE(fs::is_directory(folder.path() / "two"));
}

TEST_CASE("a lock is held where there are none, and not where another has it",
          "[missing_operations]") {
  const test::TemporaryFolder folder;
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP, EACCES}) {  // of every file
    const WithoutOperations without({.lock = error});
    REQUIRE(FileLock(folder.path() / "lock").held());
    REQUIRE(num_entries(folder.path()) == 1);
  }
  {
    const WithoutOperations without({.lock = EWOULDBLOCK});
    REQUIRE_FALSE(FileLock(folder.path() / "lock").held());
  }
  const FileLock first(folder.path() / "lock");
  REQUIRE(first.held());
  REQUIRE_FALSE(FileLock(folder.path() / "lock").held());
}

#ifndef AIFS_SANITIZE
TEST_CASE("files that cannot be mapped are read", "[missing_operations]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "a", "bytes");
  const int error = GENERATE(ENODEV, EINVAL, EACCES);
  const WithoutOperations without({.map = error});
  const MappedFile file(folder.path() / "a");
  REQUIRE(std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()) ==
          "bytes");
}
#endif

TEST_CASE("the trial of a folder says what is missing, and leaves nothing",
          "[missing_operations]") {
  const test::TemporaryFolder folder;
  REQUIRE(missing_operations(folder.path()).empty());
  const auto only = [&](const MissingOperations& missing, const std::string& text) {
    const WithoutOperations without(missing);
    const std::vector<std::string> found = missing_operations(folder.path());
    INFO(text);
    REQUIRE(found.size() == 1);
    REQUIRE_THAT(found[0], ContainsSubstring(text));
    REQUIRE(num_entries(folder.path()) == 0);
  };
  only({.lock = ENOLCK}, "no locks");
  only({.flush_file = EINVAL}, "no flush of files");
  only({.flush_folder = EINVAL}, "no flush of folders");
  only({.rename_over = EEXIST}, "no renaming over files");
  only({.rename_folder = ENOSYS}, "no renaming of folders");
  const WithoutOperations without({.flush_folder = EINVAL, .lock = ENOSYS});
  REQUIRE(missing_operations(folder.path()).size() == 2);
}

TEST_CASE("what the trial of a folder lets pass is done without later, and nothing else",
          "[missing_operations]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "one");
  write_file_atomic(folder.path() / "a", "text");
  for (const int error :
       {EPERM,  ENOENT, EIO,    EBADF, EACCES, EEXIST, EXDEV,      ENODEV, EISDIR, EINVAL,
        EMFILE, ENOTTY, ENOSPC, EROFS, ENOLCK, ENOSYS, EOPNOTSUPP, EDQUOT, ESTALE, ETIMEDOUT}) {
    for (const MissingOperations& missing :
         {MissingOperations{.flush_file = error}, MissingOperations{.flush_folder = error},
          MissingOperations{.rename_file = error}, MissingOperations{.rename_folder = error}}) {
      CAPTURE(error, missing.flush_file, missing.flush_folder, missing.rename_file);
      const WithoutOperations without(missing);
      const auto passes = [](const auto& action) {
        try {
          action();
          return true;
        } catch (const Error&) {
          return false;
        }
      };
      const bool in_trial = passes([&] { missing_operations(folder.path()); });
      const bool later = passes([&] {
        write_file_atomic(folder.path() / "a", "other text");
        sync_to_disk(folder.path());
        if (rename_folder(folder.path() / "one", folder.path() / "two"))
          REQUIRE(rename_folder(folder.path() / "two", folder.path() / "one"));
      });
      REQUIRE(in_trial == later);
      REQUIRE(num_entries(folder.path()) == 2);
    }
  }
}

TEST_CASE("room is taken for real where it cannot be reserved", "[missing_operations]") {
  const test::TemporaryFolder folder;
  const std::vector<int64_t> sizes{3 << 20, 5 << 20};
  {
    const WithoutOperations without({.reserve = EOPNOTSUPP});
    REQUIRE_NOTHROW(check_room(folder.path(), "a checkpoint", sizes));
  }
#ifndef AIFS_SANITIZE
  {
    const WithoutOperations without(
        {.reserve = EOPNOTSUPP, .write = EDQUOT, .write_most = 4 << 20});
    REQUIRE_THROWS_WITH(
        check_room(folder.path(), "a checkpoint", sizes),
        ContainsSubstring("a checkpoint takes 8388608 bytes (8.0 MiB) in '" +
                          folder.path().string()) &&
            ContainsSubstring("only 4194304 bytes (4.0 MiB) could be written there: Disk quota"));
  }
  {  // no more than is allowed is written
    const WithoutOperations without(
        {.reserve = EOPNOTSUPP, .write = EDQUOT, .write_most = 4 << 20});
    REQUIRE_NOTHROW(check_room(folder.path(), "a checkpoint", sizes, 4 << 20));
  }
#endif
  for (const int error : {EDQUOT, ENOSPC}) {
    const WithoutOperations without({.reserve = error});
    REQUIRE_THROWS_WITH(check_room(folder.path(), "a checkpoint", sizes),
                        ContainsSubstring("only 0 bytes could be written"));
  }
  const WithoutOperations without({.flush_file = EDQUOT, .reserve = EOPNOTSUPP});
  REQUIRE_THROWS_AS(check_room(folder.path(), "a checkpoint", sizes), Error);
  REQUIRE(num_entries(folder.path()) == 0);
}
