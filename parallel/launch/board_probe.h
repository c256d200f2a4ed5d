// SPDX-License-Identifier: Apache-2.0
// Whether ranks really see each other's words of work: names of hosts may not resolve, ports be
// closed, and then known work counts as a wait.
#pragma once

#include <string>
#include <vector>

#include "parallel/communicator.h"
#include "parallel/work_board.h"

namespace aifs::parallel {

// Returns where other hosts may reach this one: its name, what MASTER_ADDR says where `is_master`,
// and the addresses of its networks (at most four).
std::vector<std::string> addresses_of_host(bool is_master);

// Every rank leaves word on its board and looks for the word of rank 0. Returns the ranks for which
// that fails, the same on all; `board` may be null. Collective.
std::vector<int> ranks_without_board(Communicator& world, WorkBoard* board);

}  // namespace aifs::parallel
