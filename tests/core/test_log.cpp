// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

// Back to one rank and no file, whatever a case did.
struct Quiet {
  ~Quiet() {
    log::close_file();
    log::set_rank(0, 1);
    log::set_level(log::Level::kInfo);
  }
};

}  // namespace

TEST_CASE("lines go to the file as they are, below the level of the terminal too", "[log]") {
  const test::TemporaryFolder folder;
  const Quiet quiet;
  const fs::path file = folder.path() / "log";
  log::set_level(log::Level::kError);
  log::add_file(file.string());
  log::info("a ", 1, " {} %s");
  log::debug("b");
  log::close_file();
  log::info("after");
  const std::string text = read_file(file);
  REQUIRE_THAT(text, ContainsSubstring("info a 1 {} %s\n"));
  REQUIRE_THAT(text, ContainsSubstring("debug b\n"));
  REQUIRE(text.find("after") == std::string::npos);
}

TEST_CASE("a log file is appended to", "[log]") {
  const test::TemporaryFolder folder;
  const Quiet quiet;
  const fs::path file = folder.path() / "log";
  for (const char* text : {"first", "second"}) {
    log::add_file(file.string());
    log::info(text);
    log::close_file();
  }
  const std::string text = read_file(file);
  REQUIRE(text.find("first") < text.find("second"));
}

TEST_CASE("ranks behind the first say who they are, and only what matters", "[log]") {
  const test::TemporaryFolder folder;
  const Quiet quiet;
  const fs::path file = folder.path() / "log";
  log::add_file(file.string());
  log::set_rank(1, 4);
  log::info("chat");
  log::warning("trouble");
  log::close_file();
  const std::string text = read_file(file);
  REQUIRE_THAT(text, ContainsSubstring("[1/4] trouble"));
  REQUIRE(text.find("chat") == std::string::npos);
}

TEST_CASE("a log file that cannot be opened is counted and does not throw", "[log]") {
  const test::TemporaryFolder folder;
  const Quiet quiet;
  const int64_t before = log::num_failures();
  log::add_file(folder.path().string());  // a folder
  REQUIRE(log::num_failures() == before + 1);
  log::info("still here");
}

TEST_CASE("a full disk is counted and does not throw", "[log]") {
  if (!fs::exists("/dev/full")) return;
  const Quiet quiet;
  const int64_t before = log::num_failures();
  log::add_file("/dev/full");
  log::info("lost");
  REQUIRE(log::num_failures() > before);
}
