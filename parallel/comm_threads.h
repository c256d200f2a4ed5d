// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process, exchanging tensors through memory. Every law of several
// ranks can be tested with them where there is no MPI, and a process can play several ranks.
#pragma once

#include <exception>
#include <functional>

#include "parallel/communicator.h"

namespace aifs::parallel {

// Runs `body` on `num_ranks` threads, each with its own communicator of the group, and returns when
// all are done. If one throws, the others' pending operations fail, and the first error is
// rethrown. Reductions add in rank order: results do not depend on timing.
void run_as_threads(int num_ranks, const std::function<void(Communicator&)>& body);

// The communicators of a new group of threads; element r is to be used by one thread only. Their
// operations throw once abort() was called on any of them.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int num_ranks);

}  // namespace aifs::parallel
