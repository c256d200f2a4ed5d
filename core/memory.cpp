// SPDX-License-Identifier: Apache-2.0
#include "core/memory.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "core/control_groups.h"

namespace aifs {

int64_t usable_memory(const std::filesystem::path& root) {
  int64_t bytes = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  for (const ControlGroup& group : control_groups("memory", root)) {
    const auto line = first_line_of_file(
        group.folder / (group.version_2 ? "memory.max" : "memory.limit_in_bytes"));
    int64_t limit = 0;  // "max", and in version 1 a number beyond all memory: none
    if (line && (std::istringstream(*line) >> limit) && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

}  // namespace aifs
