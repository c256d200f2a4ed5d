// SPDX-License-Identifier: Apache-2.0
// Short texts of all ranks: who they are, and whether they agree.
#pragma once

#include <string>
#include <vector>

#include "parallel/communicator.h"

namespace aifs::parallel {

// The texts of all ranks, in rank order, on every rank. Collective.
std::vector<std::string> gather_text(Communicator& group, const std::string& text);

// Throws ConfigError on every rank, naming the ranks that differ from the first, unless all pass
// the same text. `what` is "program version", "configuration", ... Collective.
void require_same(Communicator& group, const std::string& what, const std::string& text);

}  // namespace aifs::parallel
