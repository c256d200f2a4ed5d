// SPDX-License-Identifier: Apache-2.0
// Versions of the libraries that unpack chunks.
#pragma once

#include <string>

namespace aifs::zarr {

std::string blosc_version();

}  // namespace aifs::zarr
