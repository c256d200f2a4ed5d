// SPDX-License-Identifier: Apache-2.0
#include "parallel/runtime.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "core/check.h"
#ifdef AIFS_HAVE_CUDA
#include "parallel/comm_nccl.h"
#endif
#ifdef AIFS_HAVE_MPI
#include "parallel/comm_mpi.h"
#endif

namespace aifs::parallel {

namespace {

// The first of some environment variables that is set, as a number.
int number_in_environment(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return otherwise;
}

}  // namespace

std::string host_name() {
  utsname info{};
  return ::uname(&info) == 0 ? info.nodename : "unknown host";
}

// OpenMPI, PMI and Slurm launchers, in turn. SLURM_NTASKS alone does not mean srun: a batch script
// has it too.
int launched_ranks() {
  return std::max(
      1, number_in_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1));
}

int launched_rank() {
  return number_in_environment({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
}

Runtime::Runtime(double timeout_s)
    : host_(host_name()),
      watch_(std::make_shared<OperationWatch>(launched_ranks() > 1 ? timeout_s : 0.0,
                                              concat("rank ", launched_rank(), " on ", host_))) {
  if (launched_ranks() == 1) {
    world_ = make_single_communicator();
    return;
  }
#ifdef AIFS_HAVE_MPI
  {
    const OperationWatch::Scope joining(*watch_, "joining the other ranks");
    initialize_mpi();
  }
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
  world_.reset();
#ifdef AIFS_HAVE_MPI
  if (launched_ranks() > 1) {
    const OperationWatch::Scope leaving(*watch_, "leaving the other ranks");
    finalize_mpi();
  }
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

int Runtime::local_rank() {
  return number_in_environment({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"},
                               0);
}

std::optional<int> Runtime::local_size() {
  const int size = number_in_environment({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, -1);
  return size < 0 ? std::nullopt : std::optional(std::max(1, size));
}

void Runtime::use_nccl() {
#ifdef AIFS_HAVE_CUDA
  world_ = make_nccl_communicator(std::move(world_));
#else
  throw ConfigError("parallel", "this program was built without CUDA and NCCL");
#endif
}

void Runtime::set_place(const std::string& place) {
  watch_->set_place(place);
}

}  // namespace aifs::parallel
