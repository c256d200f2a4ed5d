// SPDX-License-Identifier: Apache-2.0
#include "parallel/launcher.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "core/check.h"

namespace aifs::parallel {

namespace {

// The value of a variable, at least 0; Slurm's "4(x2)" is 4 on each of two hosts.
int number_of(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  if (!text) return otherwise;
  const std::string_view value = text;
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, number);
  const bool whole = stopped == end || *stopped == '(' || *stopped == ',';
  if (error == std::errc() && whole && number >= 0) return number;
  throw ConfigError(name, concat("the environment has '", value, "', which is no number"),
                    "it is set by launchers of several processes; unset it, or correct it");
}

// Different for jobs and steps that share a host.
uint16_t port_of_job() {
  constexpr int kFirst = 20000, kCount = 12000;
  return static_cast<uint16_t>(
      kFirst + (number_of("SLURM_JOB_ID", 0) * 17 + number_of("SLURM_STEP_ID", 0)) % kCount);
}

// How a launcher calls its four numbers.
struct LauncherNames {
  const char *ranks, *rank, *local_rank, *local_size;
  bool has_mpi;
};

// SLURM_NTASKS alone does not mean srun: a batch script has it too. torchrun may run under srun,
// whose variables its processes inherit.
constexpr LauncherNames kLaunchers[]{
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {"WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", false}};

}  // namespace

Launch read_launch() {
  Launch launch;
  const auto found =
      std::find_if(std::begin(kLaunchers), std::end(kLaunchers), [](const LauncherNames& names) {
        return std::getenv(names.ranks) != nullptr && std::getenv(names.rank) != nullptr;
      });
  if (found == std::end(kLaunchers)) {
    if (number_of("WORLD_SIZE", 1) > 1)
      throw ConfigError("WORLD_SIZE", "is in the environment, but RANK is not", "set both or none");
    return launch;
  }
  launch.ranks = std::max(1, number_of(found->ranks, 1));
  launch.rank = number_of(found->rank, 0);
  launch.local_rank =
      number_of(found->local_rank, number_of("SLURM_LOCALID", 0));  // of srun with PMI, too
  const int local_size = number_of(found->local_size, number_of("SLURM_STEP_TASKS_PER_NODE", 0));
  if (local_size > 0) launch.local_size = local_size;
  launch.has_mpi = found->has_mpi || (std::string_view(found->rank) == "SLURM_PROCID" &&
                                      std::getenv("PMIX_RANK") != nullptr);
  if (launch.rank >= launch.ranks) {
    throw ConfigError(
        found->rank,
        concat("the environment has rank ", launch.rank, " of ", launch.ranks, " processes"),
        "ranks are numbered from 0");
  }
  const char* address = std::getenv("MASTER_ADDR");
  const char* hosts = std::getenv("SLURM_STEP_NODELIST");
  launch.address = address ? address : hosts ? first_host(hosts) : "127.0.0.1";
  const int port = number_of("MASTER_PORT", port_of_job());
  if (port < 1 || port > 65535)
    throw ConfigError("MASTER_PORT", concat("the environment has ", port, ", which is no port"));
  launch.port = static_cast<uint16_t>(port);
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
