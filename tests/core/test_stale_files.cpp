// SPDX-License-Identifier: Apache-2.0
#include "core/stale_files.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>

#include "core/check.h"
#include "core/folder_trial.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

// The process of this name was there and is gone.
std::string suffix_of_dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  const std::string own = unique_suffix();
  const std::string pid = concat("-", ::getpid(), "-");
  return concat(own.substr(0, own.rfind(pid)), "-", child, "-0123abcd");
}

bool remains(const fs::path& folder, const std::string& name, double quiet_s, double age_s = 0.0) {
  write_file_atomic(folder / name, "half");
  fs::last_write_time(folder / name, fs::file_time_type::clock::now() -
                                         std::chrono::milliseconds(std::llround(1e3 * age_s)));
  remove_stale_files(folder, "", quiet_s);
  const bool is_there = fs::exists(folder / name);
  fs::remove(folder / name);
  return is_there;
}

}  // namespace

TEST_CASE("temporary files of processes that are gone are removed, others are left",
          "[stale_files]") {
  const test::TemporaryFolder folder;
  const std::string dead = suffix_of_dead_process();
  REQUIRE_FALSE(remains(folder.path(), ".trial.tmp-" + dead, 0.0));
  REQUIRE_FALSE(remains(folder.path(), "g.nc.tmp-" + dead, 600.0, 601.0));
  REQUIRE(remains(folder.path(), "g.nc.tmp-" + dead, 600.0, 500.0));    // of a container, perhaps
  REQUIRE(remains(folder.path(), "g.nc.tmp-" + unique_suffix(), 0.0));  // we are alive
  REQUIRE(remains(folder.path(), "g.nc.tmp-elsewhere-17-0123abcd", 0.0, 80000.0));
  REQUIRE_FALSE(remains(folder.path(), "g.nc.tmp-elsewhere-17-0123abcd", 0.0, 90000.0));
  // Names that we do not give.
  for (const char* name :
       {"notes.tmp-old", "a.tmp-b-c-0123abcd", "a.tmp-b-17-0123abc", "a.tmp-b-17-0123abcx",
        "a.tmp--17-0123abcd", "plain", "tmp-b-17-0123abcd"})
    REQUIRE(remains(folder.path(), name, 0.0, 1e7));
}

TEST_CASE("a trial of a folder removes what a killed one left in it", "[stale_files]") {
  const test::TemporaryFolder folder;
  const fs::path left = folder.path() / (".trial.tmp-" + suffix_of_dead_process());
  write_file_atomic(left, "half");
  check_writable(folder.path());
  REQUIRE(fs::exists(left));  // it may be at work in a container of this name
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::minutes(1));
  check_writable(folder.path() / "not yet there");
  REQUIRE_FALSE(fs::exists(left));
}

TEST_CASE("folders go with what is in them, and names with another beginning stay",
          "[stale_files]") {
  const test::TemporaryFolder folder;
  const std::string dead = suffix_of_dead_process();
  make_directories(folder.path() / (".trial.tmp-" + dead) / "inside");
  write_file_atomic(folder.path() / ("other.nc.tmp-" + dead), "half");
  REQUIRE(remove_stale_files(folder.path(), ".trial", 0.0) == 1);
  REQUIRE_FALSE(fs::exists(folder.path() / (".trial.tmp-" + dead)));
  REQUIRE(fs::exists(folder.path() / ("other.nc.tmp-" + dead)));
  REQUIRE(remove_stale_files(folder.path() / "not there", "", 0.0) == 0);
}
