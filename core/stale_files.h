// SPDX-License-Identifier: Apache-2.0
// What killed processes have left of files that they were writing under temporary names
// (temporary_name() in core/file_io.h).
#pragma once

#include <cstdint>
#include <string>

#include "core/file_io.h"

namespace aifs {

// Removes files and folders in `folder` whose temporary name begins with `prefix` and whose writer
// is no more: its process is gone from this host and they have not changed for `quiet_s` seconds
// (containers may share the name of a host, not its processes), or they are a day old, whoever
// wrote them. Returns how many. Never throws: what cannot be removed stays.
int64_t remove_stale_files(const fs::path& folder, const std::string& prefix, double quiet_s);

}  // namespace aifs
