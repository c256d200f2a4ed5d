// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/library_versions.h"

#include <blosc.h>

namespace aifs::zarr {

std::string blosc_version() {
  return blosc_get_version_string();
}

}  // namespace aifs::zarr
