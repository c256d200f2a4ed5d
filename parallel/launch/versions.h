// SPDX-License-Identifier: Apache-2.0
// Which communication libraries the program was built with.
#pragma once

#include <string>

namespace aifs::parallel {

// Each a version, or "not built in".
struct Versions {
  std::string mpi, nccl, cuda;
};
Versions versions();

}  // namespace aifs::parallel
