// SPDX-License-Identifier: Apache-2.0
#include "parallel/runtime.h"

#include <sys/utsname.h>

#include "core/check.h"
#include "parallel/comm_store.h"
#include "parallel/launcher.h"
#ifdef AIFS_HAVE_CUDA
#include "parallel/comm_nccl.h"
#endif
#ifdef AIFS_HAVE_MPI
#include "parallel/comm_mpi.h"
#endif

namespace aifs::parallel {

namespace {

const Launch& launch() {
  static const Launch the_only_one = read_launch();
  return the_only_one;
}

}  // namespace

std::string host_name() {
  utsname info{};
  return ::uname(&info) == 0 ? info.nodename : "unknown host";
}

int launched_ranks() {
  return launch().ranks;
}

int launched_rank() {
  return launch().rank;
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
  if (launch().has_mpi) {
    const OperationWatch::Scope joining(*watch_, "joining the other ranks");
    initialize_mpi();
    has_mpi_ = true;
    world_ = make_mpi_world(watch_);
    if (world_->size() != launched_ranks()) {
      throw ConfigError(
          "parallel",
          concat("the launcher started ", launched_ranks(), " ranks, MPI sees ", world_->size()),
          "this MPI and the launcher do not know each other: try srun --mpi=pmix, srun --mpi=none "
          "(without MPI), or mpirun");
    }
    return;
  }
#endif
  world_ = make_store_world({launch().address, launch().port}, launched_rank(), launched_ranks(),
                            timeout_s, watch_);
}

Runtime::~Runtime() {
  world_.reset();
#ifdef AIFS_HAVE_MPI
  if (has_mpi_) {
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
  return launch().local_rank;
}

std::optional<int> Runtime::local_size() {
  return launch().local_size;
}

bool Runtime::one_host() {
  return launch().local_size == launch().ranks;
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
