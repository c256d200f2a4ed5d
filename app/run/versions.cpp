// SPDX-License-Identifier: Apache-2.0
#include "app/run/versions.h"

#include <ATen/Context.h>
#include <torch/version.h>

#include "core/check.h"
#include "core/commit.h"
#include "core/version.h"
#include "data/zarr/library_versions.h"
#include "graph/library_versions.h"
#include "parallel/launch/versions.h"

namespace aifs::app {

std::string torch_version() {
  return TORCH_VERSION;
}

std::string commit() {
  return kCommit;
}

std::string program_version() {
  return concat(kVersion, " (", commit(), ")");
}

std::string versions_text() {
  const parallel::Versions parallel = parallel::versions();
  return concat("aifs-train ", kVersion, " (", kCommit, ", ", kBuildType, ", ", kCompiler, ")\n",
                "LibTorch   ", torch_version(), "\n", "CUDA       ", parallel.cuda, "\n",
                "NCCL       ", parallel.nccl, "\n", "MPI        ", parallel.mpi, "\n",
                "netCDF     ", graph::netcdf_version(), "\n", "c-blosc    ", zarr::blosc_version(),
                "\n",
                "licences   aifs-train Apache-2.0; LibTorch, netCDF and c-blosc BSD-3-Clause; of a "
                "package all are in share/doc/aifs-train\n");
}

}  // namespace aifs::app
