// SPDX-License-Identifier: Apache-2.0
#include "core/control_groups.h"

#include <fstream>
#include <sstream>

namespace aifs {

namespace fs = std::filesystem;

namespace {

void add_with_parents(const fs::path& mount, fs::path group, bool version_2,
                      std::vector<ControlGroup>& groups) {
  for (;;) {
    groups.push_back({group.empty() ? mount : mount / group, version_2});
    if (group.empty()) return;
    group = group.parent_path();
  }
}

bool names(const std::string& controllers, const std::string& wanted) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> first_line_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::string namespace_of_groups(const fs::path& root) {
  std::error_code ignored;
  return fs::read_symlink(root / "proc/self/ns/cgroup", ignored).string();
}

std::vector<ControlGroup> control_groups(const std::string& controller, const fs::path& root) {
  std::vector<ControlGroup> groups;
  std::ifstream file(root / "proc/self/cgroup");
  const fs::path mounts = root / "sys/fs/cgroup";
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/path" or "0::/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) {
      for (const char* mount : {"", "unified"})
        add_with_parents(*mount ? mounts / mount : mounts, group, /*version_2=*/true, groups);
    } else if (names(controllers, controller)) {
      std::string swapped = controllers;  // mounted under either order of two names
      if (const size_t comma = swapped.find(','); comma != std::string::npos)
        swapped = swapped.substr(comma + 1) + "," + swapped.substr(0, comma);
      for (const std::string& mount : {controller, controllers, swapped})
        add_with_parents(mounts / mount, group, /*version_2=*/false, groups);
    }
  }
  return groups;
}

}  // namespace aifs
