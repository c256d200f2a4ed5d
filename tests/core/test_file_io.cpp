// SPDX-License-Identifier: Apache-2.0
#include "core/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/check.h"
#include "core/host.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;

TEST_CASE("a written file reads back, and nothing is left beside it", "[file_io]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.txt";
  write_file_atomic(path, "first");
  write_file_atomic(path, "second");
  REQUIRE(read_file(path) == "second");
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a missing file is an error that names it", "[file_io]") {
  REQUIRE_THROWS_WITH(read_file("/nowhere/at/all"), ContainsSubstring("/nowhere/at/all"));
  REQUIRE_THROWS_WITH(read_file("/tmp"), ContainsSubstring("is a folder"));
  REQUIRE_THROWS_WITH(write_file_atomic("/nowhere/at/all", ""), ContainsSubstring("No such file"));
}

TEST_CASE("a pipe is read to its end though it has no size", "[file_io]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "abc", 3) == 3);
  ::close(ends[1]);
  REQUIRE(read_file(concat("/dev/fd/", ends[0])) == "abc");
  ::close(ends[0]);
}

TEST_CASE("a write that fails leaves no half file", "[file_io]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "target" / "inside");  // cannot be replaced by a file
  REQUIRE_THROWS_AS(write_file_atomic(folder.path() / "target", "text"), Error);
  int64_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path()))
    ++entries;
  REQUIRE(entries == 1);
}

TEST_CASE("a text is appended behind the header of a new file, whole or not at all", "[file_io]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "log";
  REQUIRE(append_whole(path, "one\n", "header\n").empty());
  REQUIRE(append_whole(path, "two\n", "header\n").empty());
  const std::string before = "header\none\ntwo\n";
  REQUIRE(read_file(path) == before);
  {
    const test::FileSizeLimit limit(before.size() + 3);
    REQUIRE_THAT(append_whole(path, "three\n"), ContainsSubstring("too large"));
  }
  REQUIRE(read_file(path) == before);
  REQUIRE_THAT(append_whole("/nowhere/at/all", "x"), ContainsSubstring("No such file"));
}

TEST_CASE("names of temporary files are nobody else's", "[file_io]") {
  const std::string first = unique_suffix(), second = unique_suffix();
  REQUIRE(first != second);
  // Two containers may have the same process number, two hosts the same name.
  REQUIRE_THAT(first, ContainsSubstring(concat("-", ::getpid(), "-")));
  REQUIRE(first.starts_with(host_name().substr(0, 24)));
  REQUIRE(first.find('/') == std::string::npos);
  const fs::path name = temporary_name("folder/file.nc");
  REQUIRE(name.parent_path() == "folder");
  REQUIRE(name.filename().string().starts_with("file.nc.tmp-"));
}

TEST_CASE("a file is not written over one that is being written", "[file_io]") {
  const test::TemporaryFolder folder;
  // Another writer of the same file is at work: its temporary file stays.
  const fs::path theirs = temporary_name(folder.path() / "a");
  write_file_atomic(theirs, "half");
  write_file_atomic(folder.path() / "a", "whole");
  REQUIRE(read_file(theirs) == "half");
  REQUIRE(read_file(folder.path() / "a") == "whole");
}

TEST_CASE("standard streams that are closed are opened on nothing", "[file_io]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "file").string();
  const auto first_file = [&](bool open_them) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int number = 0; number < 256; ++number)  // whoever runs tests may have others open
        ::close(number);
      if (open_them) open_standard_streams();
      const int number = ::open(file.c_str(), O_WRONLY | O_CREAT, 0644);
      const bool harmless = !open_them || (::write(1, "x", 1) == 1 && ::write(2, "x", 1) == 1);
      ::_exit(harmless ? number : 99);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WEXITSTATUS(status);
  };
  REQUIRE(first_file(false) == 0);
  REQUIRE(first_file(true) > 2);
  REQUIRE(fs::file_size(file) == 0);
}

TEST_CASE("checksums are SHA-256", "[file_io]") {
  REQUIRE(sha256_hex(std::string_view("abc")) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 pieces;
  pieces.update("a", 1);
  pieces.update("bc", 2);
  REQUIRE(pieces.finish() == sha256_hex(std::string_view("abc")));
}

TEST_CASE("a file in the way of a folder is reported", "[file_io]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "x", "");
  REQUIRE_THROWS_WITH(make_directories(folder.path() / "x" / "y"),
                      ContainsSubstring("cannot create"));
  REQUIRE_THROWS_WITH(make_directories(folder.path() / "x"), ContainsSubstring("in the way"));
}

TEST_CASE("a link to nowhere is told from a folder, a link to a folder is one", "[file_io]") {
  const test::TemporaryFolder folder;
  fs::create_symlink("nowhere", folder.path() / "dangling");
  for (const fs::path& path : {folder.path() / "dangling", folder.path() / "dangling" / "inside"}) {
    REQUIRE_THROWS_WITH(
        make_directories(path),
        ContainsSubstring("dangling' is a link to 'nowhere', which does not exist"));
  }
  make_directories(folder.path() / "real");
  fs::create_symlink("real", folder.path() / "link");
  make_directories(folder.path() / "link" / "inside");
  REQUIRE_NOTHROW(make_directories(folder.path() / "link"));
  REQUIRE(fs::is_directory(folder.path() / "real" / "inside"));
}

TEST_CASE("what cannot be read is found before it is read", "[file_io]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "empty", "");
  REQUIRE_NOTHROW(check_readable(folder.path() / "empty"));
  REQUIRE_THROWS_AS(check_readable(folder.path()), DataError);
  REQUIRE_THROWS_WITH(check_readable(folder.path() / "none"), ContainsSubstring("No such file"));
}

TEST_CASE("what cannot be examined is an error that names it, what is not there is not",
          "[file_io]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path();
  write_file_atomic(path / "file", "x");
  REQUIRE(path_exists(path / "file"));
  REQUIRE_FALSE(folder_exists(path / "file"));
  REQUIRE(folder_exists(path));
  REQUIRE_FALSE(path_exists(path / "nothing"));
  REQUIRE_FALSE(folder_exists(path / "file" / "below"));
  fs::create_symlink("round", path / "circle");
  fs::create_symlink("circle", path / "round");
  fs::create_symlink("nowhere", path / "dangling");
  for (const std::string& name : {std::string("circle"), std::string(300, 'x')}) {
    for (const auto& examine : {path_exists, folder_exists}) {
      REQUIRE_THROWS_AS(examine(path / name), DataError);
      REQUIRE_THROWS_WITH(examine(path / name), ContainsSubstring("cannot examine") &&
                                                    ContainsSubstring(name) &&
                                                    !ContainsSubstring("filesystem error"));
    }
  }
  REQUIRE_FALSE(path_exists(path / "dangling"));
  REQUIRE(dangling_link_text(path / "dangling") == ": a link to 'nowhere', which is not there");
  REQUIRE(dangling_link_text(path / "file").empty());
  REQUIRE(dangling_link_text(path / "nothing").empty());
  REQUIRE(absolute_path("x") == fs::current_path() / "x");
}

TEST_CASE("files get the rights that the user's mask leaves", "[file_io]") {
  const test::TemporaryFolder folder;
  for (const mode_t mask : {0002, 0027, 0077}) {
    const mode_t before = ::umask(mask);
    const fs::path whole = folder.path() / "whole", grown = folder.path() / "grown";
    write_file_atomic(whole, "x");
    REQUIRE(append_whole(grown, "x").empty());
    ::umask(before);
    for (const fs::path& file : {whole, grown}) {
      struct stat info {};
      REQUIRE(::stat(file.c_str(), &info) == 0);
      REQUIRE((info.st_mode & 0777) == (0666 & ~mask));
      fs::remove(file);
    }
  }
}
