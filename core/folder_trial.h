// SPDX-License-Identifier: Apache-2.0
// What a folder can take, found by trying: rights, quotas, limits of a process and missing
// operations show only when something is done. Trials leave nothing behind, and remove what killed
// ones have left. The folder need not be there: its nearest parent that is stands for it.
#pragma once

#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs {

// Throws Error naming the folder and the reason if no file can be written in it, nor it be made.
void check_writable(const fs::path& folder);

// Makes sure that files of these sizes can be there at the same time, beside what is there. Space
// is asked of the file system, then taken: reserved (fallocate(2)) or, where it cannot be, really
// written up to `most_written` bytes. `what` is their name in errors ("a checkpoint"). Throws Error
// naming the folder, what is needed and what is there.
void check_room(const fs::path& folder, const std::string& what,
                const std::vector<int64_t>& file_bytes, int64_t most_written = int64_t{1} << 28);

// Returns what the file system of an existing folder does not offer of what keeps files safe, each
// with what follows from it: "no locks: ...". Empty where nothing is missing. Throws as
// check_writable(), and for what fails in another way than an operation that is not there.
std::vector<std::string> missing_operations(const fs::path& folder);

}  // namespace aifs
