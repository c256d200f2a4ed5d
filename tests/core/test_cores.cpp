// SPDX-License-Identifier: Apache-2.0
#include "core/cores.h"

#include <sched.h>
#include <unistd.h>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

void write(const fs::path& file, const std::string& text) {
  make_directories(file.parent_path());
  write_file_atomic(file, text);
}

// Cores first to last.
std::vector<int> range(int first, int last) {
  std::vector<int> cores;
  for (int core = first; core <= last; ++core)
    cores.push_back(core);
  return cores;
}

}  // namespace

TEST_CASE("the cores are those that this thread is bound to", "[cores]") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  REQUIRE(cores_of_process("/nowhere").allowed.size() == static_cast<size_t>(CPU_COUNT(&before)));
  int last = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &before)) last = core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const Cores cores = cores_of_process("/nowhere");
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  REQUIRE(cores.allowed == std::vector<int>{last});
  REQUIRE(usable_cores(cores) == 1);
  REQUIRE(cores.quota == 0.0);
  REQUIRE(usable_cores() >= 1);
}

TEST_CASE("quotas of control groups of either version, the tightest on the way up", "[cores]") {
  const test::TemporaryFolder root;
  const fs::path groups = root.path() / "sys/fs/cgroup";
  const auto quota = [&] { return cores_of_process(root.path()).quota; };
  const fs::path mine = root.path() / "proc/self/cgroup";
  SECTION("version 2") {
    write(mine, "0::/job/step\n");
    REQUIRE(quota() == 0.0);
    write(groups / "job/step/cpu.max", "max 100000\n");
    REQUIRE(quota() == 0.0);
    write(groups / "job/cpu.max", "250000 100000\n");
    REQUIRE(quota() == 2.5);
    write(groups / "job/step/cpu.max", "400000 100000\n");
    REQUIRE(quota() == 2.5);
    write(groups / "job/step/cpu.max", "50000 100000\n");
    REQUIRE(quota() == 0.5);
    write(groups / "job/step/cpu.max", "nonsense\n");
    REQUIRE(quota() == 2.5);
  }
  SECTION("version 1, whose controllers share a folder or not") {
    const std::string folder = GENERATE("cpu", "cpu,cpuacct");
    write(mine, "12:pids:/job\n4:cpu,cpuacct:/job\n1:cpuset:/job\n");
    write(groups / folder / "job/cpu.cfs_quota_us", "-1\n");
    write(groups / folder / "job/cpu.cfs_period_us", "100000\n");
    REQUIRE(quota() == 0.0);
    write(groups / folder / "job/cpu.cfs_quota_us", "300000\n");
    REQUIRE(quota() == 3.0);
  }
  SECTION("a container, whose group has the name it has outside") {
    write(mine, "4:cpu:/docker/0123\n0::/\n");
    write(groups / "cpu/cpu.cfs_quota_us", "150000\n");
    write(groups / "cpu/cpu.cfs_period_us", "100000\n");
    REQUIRE(quota() == 1.5);
  }
}

TEST_CASE("cores are shared out over those that may use them", "[cores]") {
  const Cores all{range(0, 15), 0.0, ""};
  REQUIRE(usable_cores(all) == 16);
  REQUIRE(share_of_cores(all, {all, all, all}) == 5);
  // Bound processes share with nobody, unless they are bound to the same cores.
  const Cores low{range(0, 7), 0.0, ""}, high{range(8, 15), 0.0, ""};
  REQUIRE(share_of_cores(low, {low, high}) == 8);
  REQUIRE(share_of_cores(low, {low, low, high}) == 4);
  REQUIRE(share_of_cores(all, {all, low}) == 12);
  REQUIRE(share_of_cores(low, {all, low}) == 4);
  const Cores one{{3}, 0.0, ""};
  REQUIRE(share_of_cores(one, std::vector<Cores>(9, one)) == 1);
}

TEST_CASE("quotas are shared by their group only", "[cores]") {
  const Cores a{range(0, 15), 6.0, "a"}, b{range(0, 15), 6.0, "b"};
  REQUIRE(usable_cores(a) == 6);
  REQUIRE(share_of_cores(a, {a, a, a}) == 2);
  REQUIRE(share_of_cores(a, {a, b}) == 6);
  // A part of a core is one more thread, as the quota lets it run for a while.
  REQUIRE(usable_cores(Cores{range(0, 15), 2.5, "a"}) == 3);
  REQUIRE(usable_cores(Cores{range(0, 15), 0.2, "a"}) == 1);
  REQUIRE(usable_cores(Cores{range(0, 1), 6.0, "a"}) == 2);
}

TEST_CASE("cores survive as text", "[cores]") {
  const Cores cores{{0, 1, 2, 3, 8, 127, 128}, 2.5, "/sys/fs/cgroup/job cgroup:[4026531835]"};
  REQUIRE(to_text(cores) == "0-3,8-8,127-128;2.5;/sys/fs/cgroup/job cgroup:[4026531835]");
  for (const Cores& some : {cores, Cores{}, Cores{{5}, 0.0, ""}}) {
    const Cores back = cores_from_text(to_text(some));
    REQUIRE(back.allowed == some.allowed);
    REQUIRE(back.quota == some.quota);
    REQUIRE(back.quota_group == some.quota_group);
  }
  REQUIRE(cores_from_text("nonsense").allowed.empty());
  REQUIRE(cores_from_text("a-b;1;").allowed.empty());
}
