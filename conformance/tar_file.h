// SPDX-License-Identifier: Apache-2.0
// Archives of reference data, read by the system's `tar`.
#pragma once

#include "core/file_io.h"

namespace aifs::conformance {

// Throws DataError naming the archive if `tar` cannot read it or an entry would leave `folder`,
// which must exist; Error if there is no `tar`.
void unpack_tar(const fs::path& archive, const fs::path& folder);

// True if an archive has such a folder at its top. False for what cannot be read as an archive.
bool tar_holds(const fs::path& archive, const std::string& folder);

}  // namespace aifs::conformance
