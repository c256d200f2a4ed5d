// SPDX-License-Identifier: Apache-2.0
#include "graph/library_versions.h"

#include <netcdf.h>

namespace aifs::graph {

std::string netcdf_version() {
  const std::string text = nc_inq_libvers();  // "4.9.0 of Jun 13 2022 ..."
  return text.substr(0, text.find(' '));
}

}  // namespace aifs::graph
