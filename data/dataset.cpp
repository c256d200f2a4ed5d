// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include "core/check.h"

namespace aifs::data {

int64_t DatasetInfo::find_column(const std::string& variable) const {
  for (size_t v = 0; v < variables.size(); ++v) {
    if (variables[v] == variable) return static_cast<int64_t>(v);
  }
  return -1;
}

int64_t DatasetInfo::column(const std::string& variable) const {
  const int64_t found = find_column(variable);
  if (found < 0) {
    throw DataError(concat("'", name, "' has no variable '", variable, "'"),
                    nearest_names(variable, variables));
  }
  return found;
}

}  // namespace aifs::data
