// SPDX-License-Identifier: Apache-2.0
// The netCDF library and HDF5 below it may only be called by one thread at a time, whatever the
// files: one mutex for the whole process, which every module that calls them holds meanwhile.
#pragma once

#include <mutex>

namespace aifs {

std::recursive_mutex& netcdf_mutex();

}  // namespace aifs
