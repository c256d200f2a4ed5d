// SPDX-License-Identifier: Apache-2.0
#include "parallel/runtime.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>

#include "core/check.h"
#ifdef AIFS_HAVE_MPI
#include "parallel/comm_mpi.h"
#endif

namespace aifs::parallel {

namespace {

std::string host_name() {
  utsname info{};
  return ::uname(&info) == 0 ? info.nodename : "unknown host";
}

}  // namespace

int launched_ranks() {
  // OpenMPI, PMIx and PMI launchers, in turn. SLURM_NTASKS alone does not mean srun: a batch script
  // has it too, so the rank within the step must be there as well.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    if (const char* value = std::getenv(name)) return std::max(1, std::atoi(value));
  }
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks && std::getenv("SLURM_PROCID")) return std::max(1, std::atoi(tasks));
  return 1;
}

Runtime::Runtime()
    : host_(host_name()), watch_(std::make_shared<std::unique_ptr<OperationWatch>>()) {
  if (launched_ranks() == 1) {
    world_ = make_single_communicator();
    return;
  }
#ifdef AIFS_HAVE_MPI
  initialize_mpi();
  world_ = make_mpi_world(watch_);
  if (world_->size() != launched_ranks()) {
    throw ConfigError(
        "parallel",
        concat("the launcher started ", launched_ranks(), " ranks, MPI sees ", world_->size()),
        "this MPI and the launcher do not know each other: try srun --mpi=pmix, or "
        "mpirun");
  }
#else
  throw ConfigError(
      "parallel",
      concat(launched_ranks(), " ranks were started, but this program was built without MPI"),
      "install an MPI library and build again, or start one process");
#endif
}

Runtime::~Runtime() {
  watch_->reset();
  world_.reset();
#ifdef AIFS_HAVE_MPI
  if (launched_ranks() > 1) finalize_mpi();
#endif
}

int Runtime::rank() const {
  return world_->rank();
}
int Runtime::size() const {
  return world_->size();
}

std::string Runtime::name() const {
  return concat("rank ", rank(), " on ", host_);
}

void Runtime::watch(double timeout_s) {
  *watch_ = std::make_unique<OperationWatch>(timeout_s, name());
}

void Runtime::set_place(const std::string& place) {
  if (*watch_) (*watch_)->set_place(place);
}

}  // namespace aifs::parallel
