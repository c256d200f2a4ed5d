// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/versions.h"

#ifdef AIFS_HAVE_MPI
#include <mpi.h>
#endif
#ifdef AIFS_HAVE_CUDA
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif

#include "core/check.h"

namespace aifs::parallel {

namespace {

[[maybe_unused]] constexpr const char* kAbsent = "not built in";

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

std::string nccl_version() {
#ifdef AIFS_HAVE_CUDA
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
#else
  return kAbsent;
#endif
}

std::string cuda_version() {
#ifdef AIFS_HAVE_CUDA
  int runtime = 0, driver = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) return "unknown";
  const auto text = [](int version) { return concat(version / 1000, ".", version / 10 % 100); };
  // The driver's version is 0 where there is none; this call needs no device.
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return concat(text(runtime), ", no driver");
  return concat(text(runtime), ", driver for ", text(driver));
#else
  return kAbsent;
#endif
}

}  // namespace

Versions versions() {
  return {mpi_version(), nccl_version(), cuda_version()};
}

}  // namespace aifs::parallel
