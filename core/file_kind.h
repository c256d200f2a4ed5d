// SPDX-License-Identifier: Apache-2.0
// What a file is, by its first bytes: for messages about a file that is not what was expected.
#pragma once

#include <string>

#include "core/file_io.h"

namespace aifs {

// "a zip archive", "a tar archive", "a gzip file", "an HDF5 or netCDF-4 file", "a netCDF-3 file",
// "a GRIB file", "a safetensors file", "JSON", "text", ..., "a folder", "an empty file"; "a file of
// another kind" if nothing is recognised, and "" if there is nothing or it cannot be read. Never
// throws, reads at most a few hundred bytes.
std::string describe_kind_of_file(const fs::path& path);

}  // namespace aifs
