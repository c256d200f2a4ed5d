// SPDX-License-Identifier: Apache-2.0
// Names of folders for people.
#pragma once

#include <string>
#include <vector>

namespace aifs::report {

// The last part of each path, or the whole path as given where two end alike.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace aifs::report
