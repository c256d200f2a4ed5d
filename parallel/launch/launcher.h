// SPDX-License-Identifier: Apache-2.0
// What a launcher says about this process in its environment. Environments are inherited: a shell
// that a batch system started, and what it starts, have variables of launchers that did not start
// this process. Only those of the launcher in charge count, and only they are checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace aifs::parallel {

struct Launch {
  std::string launcher;  // "mpirun", "srun", ...; empty without
  int ranks = 1, rank = 0;
  // Among the processes of this host, and how many those are; nothing where it is not said.
  std::optional<int> local_rank, local_size;
  bool has_mpi = false;    // the launcher speaks MPI's protocol (mpirun, PMI, PMIx)
  bool srun_pmi2 = false;  // and that is the PMI-2 of srun --mpi=pmi2
};

// The first of these that is there with rank and number of ranks: torchrun, mpirun of OpenMPI,
// mpirun of MVAPICH, RANK and WORLD_SIZE by hand, PMI (mpiexec of MPICH and Intel, srun --mpi=pmi2,
// flux run), jsrun of LSF, flux run, srun; one process if there is none. A shell of an interactive
// job of Slurm is none. Reads only the environment. Throws ConfigError, whose path is the variable,
// for values that are no numbers of processes, and for ranks beyond their number.
Launch read_launch();

// Says where the first rank listens, for ranks that find each other without MPI.
struct MeetingPoint {
  std::string address;
  uint16_t port = 0;
};
// MASTER_ADDR and MASTER_PORT, else the first host of a Slurm step and a port made from the number
// of the job. Throws ConfigError for a port that is none, and if ranks are on several hosts of
// which none is named.
MeetingPoint read_meeting_point(const Launch& launch);

// The first of a compressed list of hosts as Slurm writes it: "node007" of "node[007-012,020],x1".
std::string first_host(const std::string& list);
// The number of the node-th host (from 0) in a compressed list of numbers as Slurm writes it: 2, 2,
// 2 and 1 of "2(x3),1". Nothing for other text, and beyond the list.
std::optional<int> number_on_node(std::string_view list, int64_t node);

}  // namespace aifs::parallel
