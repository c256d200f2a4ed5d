// SPDX-License-Identifier: Apache-2.0
// What a launcher says about this process in its environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace aifs::parallel {

struct Launch {
  int ranks = 1, rank = 0;
  int local_rank = 0;             // among the processes of this host
  std::optional<int> local_size;  // how many those are
  bool has_mpi = false;           // the launcher speaks MPI's protocol (mpirun, PMI, PMIx)
  // Where the first rank listens, for ranks that find each other without MPI.
  std::string address;
  uint16_t port = 0;
};

// OpenMPI, PMI and Slurm launchers, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun
// sets them; one process if there is none. Reads only the environment. Throws ConfigError, whose
// path is the variable, for values that are no numbers and ranks beyond their number.
Launch read_launch();

// The first of a compressed list of hosts as Slurm writes it: "node007" of "node[007-012,020],x1".
std::string first_host(const std::string& list);

}  // namespace aifs::parallel
