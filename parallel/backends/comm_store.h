// SPDX-License-Identifier: Apache-2.0
// CPU tensors through a store of LibTorch (c10d::TCPStore) that the first rank serves: for ranks
// that a launcher has started without MPI. Slow for large tensors, which all pass through one host,
// and enough to start NCCL and agree on a few numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "parallel/communicator.h"
#include "parallel/operation_watch.h"

namespace aifs::parallel {

struct StoreAddress {
  std::string host;
  uint16_t port = 0;
};

// The group of all ranks; returns when all have come. Throws Error naming the address if the first
// rank cannot listen there, or is not reached within the time limit (0: five minutes), ConfigError
// if another process has this rank. The last communicator of the first rank waits for the others to
// leave.
std::unique_ptr<Communicator> make_store_world(const StoreAddress& address, int rank, int size,
                                               double timeout_s,
                                               std::shared_ptr<OperationWatch> watch);

}  // namespace aifs::parallel
