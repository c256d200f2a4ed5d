// SPDX-License-Identifier: Apache-2.0
#include "parallel/launcher.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

namespace aifs::parallel {

namespace {

using Names = std::initializer_list<const char*>;

// The first of some environment variables that is set.
const char* value_of(Names names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) return value;
  }
  return nullptr;
}

int number_of(Names names, int otherwise) {
  const char* value = value_of(names);
  return value ? std::atoi(value) : otherwise;
}

// Different for jobs and steps that share a host.
uint16_t port_of_job() {
  constexpr int kFirst = 20000, kCount = 12000;
  return static_cast<uint16_t>(
      kFirst + (number_of({"SLURM_JOB_ID"}, 0) * 17 + number_of({"SLURM_STEP_ID"}, 0)) % kCount);
}

}  // namespace

// SLURM_NTASKS alone does not mean srun: a batch script has it too.
Launch read_launch() {
  Launch launch;
  launch.ranks = std::max(
      1, number_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"}, 1));
  launch.rank = number_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}, 0);
  launch.local_rank = number_of(
      {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"}, 0);
  // Slurm's "4(x2)" is 4 on each of two hosts.
  const int local_size = number_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                    "SLURM_STEP_TASKS_PER_NODE", "LOCAL_WORLD_SIZE"},
                                   0);
  if (local_size > 0) launch.local_size = local_size;
  launch.has_mpi = value_of({"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"}) != nullptr;
  const char* hosts = value_of({"SLURM_STEP_NODELIST"});
  const char* address = value_of({"MASTER_ADDR"});
  launch.address = address ? address : hosts ? first_host(hosts) : "127.0.0.1";
  launch.port = static_cast<uint16_t>(number_of({"MASTER_PORT"}, port_of_job()));
  return launch;
}

std::string first_host(const std::string& list) {
  const size_t end = list.find_first_of(",[");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const size_t close = list.find(']', end);
  const std::string numbers = list.substr(end + 1, close - end - 1);
  std::string host = list.substr(0, end) + numbers.substr(0, numbers.find_first_of(",-"));
  if (close == std::string::npos) return host;
  return first_host(host + list.substr(close + 1));
}

}  // namespace aifs::parallel
