// SPDX-License-Identifier: Apache-2.0
// CPU tensors over MPI. Present only in builds with MPI (AIFS_HAVE_MPI).
#pragma once

#include <memory>

#include "parallel/communicator.h"
#include "parallel/operation_watch.h"

namespace aifs::parallel {

// False if this MPI surely cannot join ranks by PMI-2. To be asked before initialize_mpi(), which
// would end the process.
bool may_join_by_pmi2();
// MPI_Init_thread and MPI_Finalize; operations of different groups may be called from
// different threads at a time.
void initialize_mpi();
void finalize_mpi();

// The group of all ranks. A group that ends waits until what it sent has been received (watched,
// like every operation), but not while an exception is on its way.
std::unique_ptr<Communicator> make_mpi_world(std::shared_ptr<OperationWatch> watch);

}  // namespace aifs::parallel
