// SPDX-License-Identifier: Apache-2.0
// GPU tensors over NCCL, CPU tensors over another communicator of the same ranks. Present only in
// CUDA builds (AIFS_HAVE_CUDA).
#pragma once

#include <memory>

#include "parallel/communicator.h"

namespace aifs::parallel {

// `host` carries CPU tensors and the start of NCCL. NCCL itself starts with the first GPU tensor,
// on the device that is current then; groups that never see one cost nothing.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> host);

}  // namespace aifs::parallel
