// SPDX-License-Identifier: Apache-2.0
// Version of the library that stores graphs.
#pragma once

#include <string>

namespace aifs::graph {

std::string netcdf_version();

}  // namespace aifs::graph
