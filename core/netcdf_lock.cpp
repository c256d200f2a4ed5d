// SPDX-License-Identifier: Apache-2.0
#include "core/netcdf_lock.h"

namespace aifs {

std::recursive_mutex& netcdf_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

}  // namespace aifs
