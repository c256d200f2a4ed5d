// SPDX-License-Identifier: Apache-2.0
#include "core/memory.h"

#include <unistd.h>

#include "core/control_groups.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

void write(const fs::path& path, const std::string& text) {
  make_directories(path.parent_path());
  write_file_atomic(path, text);
}

int64_t of_machine() {
  return static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("memory is that of the machine where no group limits it", "[memory]") {
  const test::TemporaryFolder root;
  REQUIRE(usable_memory(root.path()) == of_machine());
  write(root.path() / "proc/self/cgroup", "0::/job\n");
  write(root.path() / "sys/fs/cgroup/job/memory.max", "max\n");
  REQUIRE(usable_memory(root.path()) == of_machine());
}

TEST_CASE("the least limit of a group and its parents holds", "[memory]") {
  const test::TemporaryFolder root;
  write(root.path() / "proc/self/cgroup", "0::/user/job\n");
  write(root.path() / "sys/fs/cgroup/user/job/memory.max", "3000000\n");
  REQUIRE(usable_memory(root.path()) == 3000000);
  write(root.path() / "sys/fs/cgroup/user/memory.max", "2000000\n");
  REQUIRE(usable_memory(root.path()) == 2000000);
}

TEST_CASE("groups of version 1 are found under the name of their controller", "[memory]") {
  const test::TemporaryFolder root;
  write(root.path() / "proc/self/cgroup", "7:memory:/job\n3:cpu,cpuacct:/other\n");
  write(root.path() / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000000\n");
  write(root.path() / "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  REQUIRE(usable_memory(root.path()) == 1000000);
  REQUIRE(control_groups("cpu", root.path()).size() == 6);  // three places, each with its root
}
