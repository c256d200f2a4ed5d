// SPDX-License-Identifier: Apache-2.0
#include "parallel/versions.h"

#ifdef AIFS_HAVE_MPI
#include <mpi.h>
#endif

namespace aifs::parallel {

namespace {

constexpr const char* kAbsent = "not built in";

std::string mpi_version() {
#ifdef AIFS_HAVE_MPI
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown";
  const std::string whole(text, static_cast<size_t>(length));
  return whole.substr(0, whole.find(','));
#else
  return kAbsent;
#endif
}

}  // namespace

Versions versions() {
  return {mpi_version(), kAbsent, kAbsent};
}

}  // namespace aifs::parallel
