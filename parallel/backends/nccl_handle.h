// SPDX-License-Identifier: Apache-2.0
// What users of NCCL share: how its communicators start, what its types and errors are.
#pragma once

#include <nccl.h>

#include <memory>

#include "parallel/communicator.h"

namespace aifs::parallel {

// Throws Error naming the operation unless `status` is success.
void check_nccl(ncclResult_t status, const char* operation);

// Throws Error for a type that NCCL cannot carry.
ncclDataType_t nccl_type(const at::Tensor& tensor);

struct DestroyNccl {
  void operator()(ncclComm_t comm) const { ncclCommDestroy(comm); }
};
using NcclHandle = std::unique_ptr<ncclComm, DestroyNccl>;

// Collective over `host`, which carries the main rank's identifier in a CPU tensor.
NcclHandle start_nccl(Communicator& host, ncclConfig_t config = NCCL_CONFIG_INITIALIZER);

}  // namespace aifs::parallel
