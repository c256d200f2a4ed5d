// SPDX-License-Identifier: Apache-2.0
// The control groups (cgroups(7), versions 1 and 2) that limit this process: containers and batch
// systems say there how much time and memory it has.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace aifs {

struct ControlGroup {
  std::filesystem::path folder;  // where its limits stand
  bool version_2 = true;
};

// The groups that this process is in which `controller` ("cpu", "memory") may limit, each followed
// by its parents up to the root of the mounted tree: a limit of any of them holds. Looked for under
// `root`. In a container a path may be that of the host, of which only the end is mounted: folders
// need not exist.
std::vector<ControlGroup> control_groups(const std::string& controller,
                                         const std::filesystem::path& root = "/");

// Containers call their groups alike; this text differs.
std::string namespace_of_groups(const std::filesystem::path& root = "/");

// Without its end of line; nothing if the file is not there.
std::optional<std::string> first_line_of_file(const std::filesystem::path& path);

}  // namespace aifs
