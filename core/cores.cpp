// SPDX-License-Identifier: Apache-2.0
#include "core/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <thread>

#include "core/check.h"
#include "core/control_groups.h"

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

// A quota in cores, if `folder` limits the time of its processes.
std::optional<double> quota_of(const fs::path& folder, bool version_2) {
  double quota = 0.0, period = 0.0;
  if (version_2) {
    const auto line = first_line_of_file(folder / "cpu.max");  // "150000 100000" or "max 100000"
    if (!line || !(std::istringstream(*line) >> quota >> period)) return std::nullopt;
  } else {
    const auto first = first_line_of_file(folder / "cpu.cfs_quota_us");  // -1: none
    const auto second = first_line_of_file(folder / "cpu.cfs_period_us");
    if (!first || !second || !(std::istringstream(*first) >> quota) ||
        !(std::istringstream(*second) >> period))
      return std::nullopt;
  }
  if (!(quota > 0.0) || !(period > 0.0)) return std::nullopt;
  return quota / period;
}

// The tightest quota of all groups.
void add_quota(Cores& cores, const fs::path& root) {
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const auto quota = quota_of(group.folder, group.version_2);
    if (!quota || (cores.quota > 0.0 && *quota >= cores.quota)) continue;
    cores.quota = *quota;
    cores.quota_group = group.folder.string();
  }
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
