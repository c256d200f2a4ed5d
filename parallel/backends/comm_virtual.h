// SPDX-License-Identifier: Apache-2.0
// A fixed number of ranks played by however many processes there are: each process runs an equal
// share of them as threads. Every reduction adds in rank order, so results are the same bits for
// any number of processes. The price is memory (every rank has its own weights) and copies.
#pragma once

#include <functional>

#include "parallel/communicator.h"

namespace aifs::parallel {

// Runs `body` once for each of this process's ranks, and returns when all are done. `processes`
// carries tensors between processes, from several threads at a time if ranks form groups; every
// process calls this with the same number of ranks, a multiple of the number of processes. If a
// body throws, the others' pending operations throw RankAborted, and the first error is rethrown.
// send() and receive() reach ranks of the same process only.
void run_as_virtual_ranks(Communicator& processes, int num_ranks,
                          const std::function<void(Communicator&)>& body);

// All ranks in this process: every law of several ranks can be tested where there is no MPI.
void run_as_threads(int num_ranks, const std::function<void(Communicator&)>& body);

}  // namespace aifs::parallel
