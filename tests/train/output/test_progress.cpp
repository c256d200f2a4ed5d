// SPDX-License-Identifier: Apache-2.0
#include "train/output/progress.h"

#include <sstream>

#include "core/file_io.h"
#include "core/log.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using train::Progress;

namespace {

// The log lines of these updates.
std::vector<std::string> lines_of(const train::ProgressOptions& options, int64_t from, int64_t to) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "log";
  log::add_file(file.string());
  {
    Progress progress(options);
    for (int64_t step = from; step <= to; ++step)
      progress.update(step, concat("text ", step));
  }
  log::close_file();
  std::istringstream text(read_file(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("there is a line every so many steps and at the end, and no other", "[progress]") {
  const auto lines = lines_of({.every_steps = 3, .bar = false, .last_step = 7}, 1, 7);
  REQUIRE(lines.size() == 3);
  REQUIRE_THAT(lines[0], ContainsSubstring("step 3/7  text 3"));
  REQUIRE_THAT(lines[1], ContainsSubstring("step 6/7  text 6"));
  REQUIRE_THAT(lines[2], ContainsSubstring("step 7/7  text 7"));
}

TEST_CASE("a line has rate and time left", "[progress]") {
  const auto lines = lines_of({.every_steps = 1, .bar = false, .last_step = 2}, 1, 2);
  REQUIRE_THAT(lines.at(0), ContainsSubstring("steps/s, "));
  REQUIRE_THAT(lines.at(0), ContainsSubstring(" left"));
  REQUIRE_THAT(lines.at(1), ContainsSubstring("0.0 s left"));
}

TEST_CASE("without a last step there is no time left", "[progress]") {
  const auto lines = lines_of({.every_steps = 2, .bar = false}, 1, 4);
  REQUIRE(lines.size() == 2);
  REQUIRE_THAT(lines[0], ContainsSubstring("step 2  text 2"));
  REQUIRE(lines[0].find("left") == std::string::npos);
}

TEST_CASE("steps beyond the last one and before the first are no trouble", "[progress]") {
  REQUIRE_NOTHROW(
      lines_of({.every_steps = 1, .bar = true, .first_step = 10, .last_step = 3}, 9, 12));
}
