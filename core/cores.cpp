// SPDX-License-Identifier: Apache-2.0
#include "core/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "core/check.h"

namespace aifs {

namespace fs = std::filesystem;

namespace {

constexpr double kRounding = 1e-9;  // of sums of fractions

// The affinity mask. Kernels with more cores than the set has places for refuse the call, so the
// set grows until they do not.
std::vector<int> affinity() {
  for (size_t places = 1024; places <= size_t{1} << 20; places *= 4) {
    cpu_set_t* set = CPU_ALLOC(places);
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(places);
    CPU_ZERO_S(bytes, set);
    std::vector<int> cores;
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    for (size_t core = 0; known && core < places; ++core) {
      if (CPU_ISSET_S(core, bytes, set)) cores.push_back(static_cast<int>(core));
    }
    CPU_FREE(set);
    if (known) return cores;
  }
  return {};
}

std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// A quota in cores, if `folder` limits the time of its processes.
std::optional<double> quota_of(const fs::path& folder, bool version_2) {
  double quota = 0.0, period = 0.0;
  if (version_2) {
    const auto line = first_line(folder / "cpu.max");  // "150000 100000" or "max 100000"
    if (!line || !(std::istringstream(*line) >> quota >> period)) return std::nullopt;
  } else {
    const auto first = first_line(folder / "cpu.cfs_quota_us");  // -1: none
    const auto second = first_line(folder / "cpu.cfs_period_us");
    if (!first || !second || !(std::istringstream(*first) >> quota) ||
        !(std::istringstream(*second) >> period))
      return std::nullopt;
  }
  if (!(quota > 0.0) || !(period > 0.0)) return std::nullopt;
  return quota / period;
}

// The tightest quota from a group up to the root of the mounted tree. In a container the path may
// be that of the host, of which only the end of the walk is mounted.
void tighten(Cores& cores, const fs::path& mount, fs::path group, bool version_2) {
  for (;;) {
    const fs::path folder = group.empty() ? mount : mount / group;
    if (const auto quota = quota_of(folder, version_2);
        quota && (cores.quota == 0.0 || *quota < cores.quota)) {
      cores.quota = *quota;
      cores.quota_group = folder.string();
    }
    if (group.empty()) return;
    group = group.parent_path();
  }
}

bool names_cpu(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

std::string namespace_of_groups(const fs::path& root) {
  std::error_code ignored;
  return fs::read_symlink(root / "proc/self/ns/cgroup", ignored).string();
}

void add_quota(Cores& cores, const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  const fs::path mounts = root / "sys/fs/cgroup";
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/path" or "0::/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) {
      for (const char* mount : {"", "unified"})
        tighten(cores, *mount ? mounts / mount : mounts, group, /*version_2=*/true);
    } else if (names_cpu(controllers)) {
      for (const char* mount : {"cpu", "cpu,cpuacct", "cpuacct,cpu"})
        tighten(cores, mounts / mount, group, /*version_2=*/false);
    }
  }
  // Containers call their groups alike.
  if (cores.quota > 0.0) cores.quota_group += " " + namespace_of_groups(root);
}

}  // namespace

Cores cores_of_process(const fs::path& root) {
  Cores cores;
  cores.allowed = affinity();
  add_quota(cores, root);
  return cores;
}

int64_t usable_cores(const Cores& cores) {
  return share_of_cores(cores, {cores});
}

int64_t usable_cores() {
  return usable_cores(cores_of_process());
}

int64_t share_of_cores(const Cores& own, const std::vector<Cores>& on_machine) {
  const auto as_many = [&](const auto& condition) {
    const auto count = std::count_if(on_machine.begin(), on_machine.end(), condition);
    return static_cast<double>(std::max<std::ptrdiff_t>(1, count));
  };
  double share = 0.0;
  for (const int core : own.allowed) {
    share += 1.0 / as_many([&](const Cores& other) {
               return std::binary_search(other.allowed.begin(), other.allowed.end(), core);
             });
  }
  if (own.allowed.empty()) share = std::thread::hardware_concurrency();  // 0 if not known
  if (own.quota > 0.0) {
    const double whole = std::ceil(own.quota - kRounding);
    share = std::min(share, whole / as_many([&](const Cores& other) {
                              return other.quota > 0.0 && other.quota_group == own.quota_group;
                            }));
  }
  return std::max<int64_t>(1, static_cast<int64_t>(share + kRounding));
}

// "0-3,8;2.5;group".
std::string to_text(const Cores& cores) {
  std::string text;
  for (size_t i = 0; i < cores.allowed.size(); ++i) {
    size_t last = i;
    while (last + 1 < cores.allowed.size() && cores.allowed[last + 1] == cores.allowed[last] + 1)
      ++last;
    text += concat(text.empty() ? "" : ",", cores.allowed[i], "-", cores.allowed[last]);
    i = last;
  }
  return concat(text, ";", cores.quota, ";", cores.quota_group);
}

Cores cores_from_text(const std::string& text) {
  Cores cores;
  const size_t first = text.find(';'), second = text.find(';', first + 1);
  if (first == std::string::npos || second == std::string::npos) return cores;
  std::istringstream ranges(text.substr(0, first));
  for (std::string range; std::getline(ranges, range, ',');) {
    int from = 0, to = -1;
    char dash = 0;
    if (!(std::istringstream(range) >> from >> dash >> to)) return {};
    for (int core = from; core <= to; ++core)
      cores.allowed.push_back(core);
  }
  std::istringstream(text.substr(first + 1, second - first - 1)) >> cores.quota;
  cores.quota_group = text.substr(second + 1);
  return cores;
}

}  // namespace aifs
