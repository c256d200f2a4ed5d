// SPDX-License-Identifier: Apache-2.0
#include "report/short_names.h"

#include <algorithm>

#include "core/file_io.h"

namespace aifs::report {

std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  std::vector<std::string> last_parts;
  for (const std::string& path : paths) {
    fs::path folder = absolute_path(path).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    last_parts.push_back(folder.filename().string());
  }
  std::vector<std::string> names = last_parts;
  for (size_t i = 0; i < names.size(); ++i)
    if (std::count(last_parts.begin(), last_parts.end(), last_parts[i]) > 1) names[i] = paths[i];
  return names;
}

}  // namespace aifs::report
