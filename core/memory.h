// SPDX-License-Identifier: Apache-2.0
// How much main memory this process may use, which need not be that of the machine.
#pragma once

#include <cstdint>
#include <filesystem>

namespace aifs {

// Bytes: those of the machine, or less where a control group has a limit (containers, batch
// systems). Control groups are looked for under `root`.
int64_t usable_memory(const std::filesystem::path& root = "/");

}  // namespace aifs
