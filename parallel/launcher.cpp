// SPDX-License-Identifier: Apache-2.0
#include "parallel/launcher.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "core/check.h"

namespace aifs::parallel {

namespace {

using Names = std::initializer_list<const char*>;

struct Variable {
  const char* name = nullptr;
  std::string_view value = {};
};

// The first of some environment variables that is set.
Variable first_of(Names names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) return {name, value};
  }
  return {};
}

// Its value, at least 0; Slurm's "4(x2)" is 4 on each of two hosts.
int number_of(Names names, int otherwise) {
  const auto [name, value] = first_of(names);
  if (!name) return otherwise;
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
  if (launch.rank >= launch.ranks) {
    throw ConfigError(
        first_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}).name,
        concat("the environment has rank ", launch.rank, " of ", launch.ranks, " processes"),
        "ranks are numbered from 0");
  }
  const int local_size = number_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                    "SLURM_STEP_TASKS_PER_NODE", "LOCAL_WORLD_SIZE"},
                                   0);
  if (local_size > 0) launch.local_size = local_size;
  launch.has_mpi = first_of({"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"}).name != nullptr;
  const Variable address = first_of({"MASTER_ADDR"}), hosts = first_of({"SLURM_STEP_NODELIST"});
  launch.address = address.name ? address.value
                   : hosts.name ? first_host(std::string(hosts.value))
                                : "127.0.0.1";
  const int port = number_of({"MASTER_PORT"}, port_of_job());
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
