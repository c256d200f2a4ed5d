// SPDX-License-Identifier: Apache-2.0
// What the system keeps in memory of the files below a folder.
#pragma once

#include "core/file_io.h"

namespace aifs::app {

// Asks the system to forget them. It need not: see below.
void drop_page_cache(const fs::path& folder);

// The share of their bytes that is in memory; 1 if they are empty or the system does not tell.
double resident_share(const fs::path& folder);

}  // namespace aifs::app
