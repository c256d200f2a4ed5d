// SPDX-License-Identifier: Apache-2.0
// What every communicator must do, whatever carries the tensors. The laws throw if they are broken:
// they run on several threads, where the assertions of the test framework must not be used.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/communicator.h"

namespace aifs::test {

using Law = std::function<void(parallel::Communicator&)>;

// Name and law: results of every operation, adjoint identities, with even, uneven and empty shards,
// on tensors of this device.
std::vector<std::pair<std::string, Law>> communicator_laws(const at::Device& where = at::kCPU);

}  // namespace aifs::test
