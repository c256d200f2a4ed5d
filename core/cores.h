// SPDX-License-Identifier: Apache-2.0
// How many cores this process may use, which need not be those of the machine: launchers and batch
// systems bind processes to some of them (sched_setaffinity(2), cpusets), containers get a share of
// their time (CPU quota of a control group, versions 1 and 2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace aifs {

struct Cores {
  std::vector<int> allowed;  // numbers of the cores of the affinity mask, ascending
  double quota = 0.0;        // time in cores; 0: no limit
  std::string quota_group;   // processes of a machine with the same text share the quota
};

// Those of this process. Control groups are looked for under `root`. What the system does not say
// is no limit.
Cores cores_of_process(const std::filesystem::path& root = "/");

// Threads that can run at a time: at least 1.
int64_t usable_cores(const Cores& cores);
// Returns the number for this process.
int64_t usable_cores();

// Returns the share of one of several processes of a machine, `own` among them, that compute at the
// same time: cores and quotas are shared out evenly over those that may use them.
int64_t share_of_cores(const Cores& own, const std::vector<Cores>& on_machine);

// One line without "\n", and back; text that is none gives Cores{}.
std::string to_text(const Cores& cores);
Cores cores_from_text(const std::string& text);

}  // namespace aifs
