// SPDX-License-Identifier: Apache-2.0
#include "app/watch_tools/line_tail.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using app::LineTail;
using Lines = std::vector<std::string>;

TEST_CASE("lines come once, and whole", "[watch]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "log";
  LineTail tail(file);
  REQUIRE(tail.next().empty());
  REQUIRE_FALSE(tail.is_at_start());
  REQUIRE(append_whole(file, "one\ntw").empty());
  REQUIRE(tail.next() == Lines{"one"});
  REQUIRE(tail.is_at_start());
  REQUIRE(tail.next().empty());
  REQUIRE_FALSE(tail.is_at_start());
  REQUIRE(append_whole(file, "o\n\nthree\n").empty());
  REQUIRE(tail.next() == Lines{"two", "", "three"});
}

TEST_CASE("lines longer than a piece that is read stay whole", "[watch]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "log";
  const std::string lengthy(3 << 20, 'x');
  write_file_atomic(file, lengthy + "\nshort\n");
  REQUIRE(LineTail(file).next() == Lines{lengthy, "short"});
}

TEST_CASE("a file that is replaced, cut or removed is read from its beginning", "[watch]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "log";
  write_file_atomic(file, "one\ntwo\nthr");
  LineTail tail(file);
  REQUIRE(tail.next() == Lines{"one", "two"});
  SECTION("replaced") {
    write_file_atomic(file, "another\nfile, which is longer\n");
    REQUIRE(tail.next() == Lines{"another", "file, which is longer"});
    REQUIRE(tail.is_at_start());
  }
  SECTION("cut") {
    fs::resize_file(file, 4);
    REQUIRE(tail.next() == Lines{"one"});
    REQUIRE(tail.is_at_start());
  }
  SECTION("removed") {
    fs::remove(file);
    REQUIRE(tail.next().empty());
    REQUIRE(tail.written_s() == 0.0);
    write_file_atomic(file, "new\n");
    REQUIRE(tail.next() == Lines{"new"});
    REQUIRE(tail.is_at_start());
  }
}

TEST_CASE("what is no file to read is an error that names it", "[watch]") {
  const test::TemporaryFolder folder;
  REQUIRE_THROWS_AS(LineTail(folder.path()).next(), DataError);
  REQUIRE_THROWS_WITH(LineTail(folder.path()).next(), ContainsSubstring(folder.path().string()));
}
