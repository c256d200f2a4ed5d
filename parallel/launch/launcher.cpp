// SPDX-License-Identifier: Apache-2.0
// The variables: OpenMPI's FAQ "OMPI_COMM_WORLD_SIZE", MPICH's hydra, torchrun's manual, srun(1),
// flux-run(1), IBM's jsrun manual.
#include "parallel/launch/launcher.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <iterator>

#include "core/check.h"

namespace aifs::parallel {

namespace {

// The value of a variable; null where it is absent or empty.
const char* variable(const char* name) {
  const char* value = name ? std::getenv(name) : nullptr;
  return value && *value ? value : nullptr;
}

std::optional<uint64_t> to_number(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end || text.empty()) return std::nullopt;
  return number;
}

// A number of processes of the launcher in charge.
int count_of(const char* name) {
  const std::string_view value = variable(name);
  const std::optional<uint64_t> number = to_number(value);
  if (number && *number <= INT_MAX) return static_cast<int>(*number);
  throw ConfigError(name,
                    concat("the environment has '", value, "', which is no number",
                           number ? " of processes" : ""),
                    "it is set by launchers of several processes; unset it, or correct it");
}

std::optional<int> optional_count(const char* name) {
  return variable(name) ? std::optional(count_of(name)) : std::nullopt;
}

// Slurm numbers steps that are no srun from the top of 32 bits down: the shell of an interactive
// job, a batch script. Their variables stay in what runs in them.
bool in_slurm_step() {
  constexpr uint64_t kFirstSpecial = 0xfffffff0;
  const char* step = variable("SLURM_STEP_ID");
  if (!step) step = variable("SLURM_STEPID");
  return !step || to_number(step).value_or(0) < kFirstSpecial;
}

// Describes what the launchers say of this process, apart from whether they started it.
struct LauncherNames {
  const char* launcher;
  const char *ranks, *rank, *local_rank, *local_size;
  bool has_mpi;
  const char* mark;  // must be there, too
  bool (*in_charge)();
};

bool always() {
  return true;
}

// Launchers that are started by others come first: torchrun and mpirun run under srun, whose
// variables their processes inherit. SLURM_NTASKS alone does not mean srun: a batch script has it.
constexpr LauncherNames kLaunchers[]{
    {"torchrun", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false,
     "TORCHELASTIC_RUN_ID", always},
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true, nullptr, always},
    {"mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", true, nullptr, always},
    {"the environment", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false, nullptr,
     always},
    {"mpiexec", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true, nullptr,
     always},
    {"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK",
     "JSM_NAMESPACE_LOCAL_SIZE", false, nullptr, always},
    {"flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", nullptr, false, nullptr,
     always},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", nullptr, false, nullptr,
     in_slurm_step}};

// True if a launcher that says the same about the whole has started what `launch` describes: its
// words about this host hold, too.
bool also_started(const Launch& launch, const char* ranks, const char* rank) {
  const auto same = [](const char* name, int number) {
    const char* text = variable(name);
    return text && to_number(text) == static_cast<uint64_t>(number);
  };
  return same(ranks, launch.ranks) && same(rank, launch.rank);
}

bool is_srun(const Launch& launch) {
  return in_slurm_step() && also_started(launch, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
}

// Returns the tasks of this host, from SLURM_STEP_TASKS_PER_NODE. What that text does not say is
// counted later.
std::optional<int> tasks_of_slurm_node() {
  const char* list = variable("SLURM_STEP_TASKS_PER_NODE");
  if (!list) return std::nullopt;
  const char* node = variable("SLURM_NODEID");
  if (const auto number = to_number(node ? node : "")) {
    return *number > INT_MAX ? std::nullopt : number_on_node(list, static_cast<int64_t>(*number));
  }
  const bool all_alike = std::string_view(list).find(',') == std::string_view::npos;
  return all_alike ? number_on_node(list, 0) : std::nullopt;
}

// The first of some variables that is a number. They are of a launcher that is not in charge, and
// stop nothing.
std::optional<int> hint_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = variable(name);
    if (const auto number = to_number(text ? text : ""); number && *number <= INT_MAX)
      return static_cast<int>(*number);
  }
  return std::nullopt;
}

// Launchers that say nothing about this host may have been started by one that does.
void complete(Launch& launch) {
  const auto add = [&](std::optional<int> local_rank, std::optional<int> local_size) {
    if (!launch.local_rank) launch.local_rank = local_rank;
    if (!launch.local_size) launch.local_size = local_size;
  };
  if (launch.launcher == "mpiexec") {
    add(hint_of({"PMI_LOCAL_RANK", "PALS_LOCAL_RANKID"}),
        hint_of({"PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE"}));
  }
  if (is_srun(launch)) add(hint_of({"SLURM_LOCALID"}), tasks_of_slurm_node());
  if (also_started(launch, "FLUX_JOB_SIZE", "FLUX_TASK_RANK")) {
    const bool one_node = hint_of({"FLUX_JOB_NNODES"}) == 1;
    add(hint_of({"FLUX_TASK_LOCAL_ID"}), one_node ? std::optional(launch.ranks) : std::nullopt);
  }
  // Numbers of several sources that do not fit each other are worth nothing.
  const bool fits = launch.local_size > 0 && launch.local_size <= launch.ranks &&
                    launch.local_rank.value_or(0) < launch.local_size;
  if (!fits) launch.local_size.reset();
}

// Variables of one launcher that contradict each other.
void check(const Launch& launch, const LauncherNames& names) {
  if (launch.rank >= launch.ranks) {
    throw ConfigError(names.rank,
                      concat("the environment has rank ", launch.rank, " of ", launch.ranks,
                             " processes (", names.ranks, ")"),
                      "ranks are numbered from 0");
  }
  if (!launch.local_size) return;
  if (*launch.local_size > launch.ranks) {
    throw ConfigError(names.local_size, concat("the environment has ", *launch.local_size,
                                               " processes on this host, but ", launch.ranks,
                                               " in all (", names.ranks, ")"));
  }
  if (launch.local_rank.value_or(0) >= *launch.local_size) {
    throw ConfigError(
        names.local_rank,
        concat("the environment has process ", launch.local_rank.value_or(0), " of the ",
               *launch.local_size, " on this host (", names.local_size, ")"),
        "they are numbered from 0");
  }
}

// Different for jobs and steps that share a host, and the same for all ranks of one.
uint16_t port_of_job() {
  constexpr uint64_t kFirst = 20000, kCount = 12000;
  const auto part = [](const char* name) {
    const char* text = variable(name);
    if (!text) return uint64_t{0};
    // Jobs of Flux have names of letters.
    if (const auto number = to_number(text)) return *number;
    uint64_t hash = 14695981039346656037U;  // FNV-1a
    for (const char* letter = text; *letter; ++letter)
      hash = (hash ^ static_cast<unsigned char>(*letter)) * 1099511628211U;
    return hash;
  };
  uint64_t sum = part("SLURM_STEP_ID");
  for (const char* job : {"SLURM_JOB_ID", "FLUX_JOB_ID", "LSB_JOBID"})
    sum += part(job) % kCount * 17;
  return static_cast<uint16_t>(kFirst + sum % kCount);
}

}  // namespace

Launch read_launch() {
  Launch launch;
  const auto found =
      std::find_if(std::begin(kLaunchers), std::end(kLaunchers), [](const LauncherNames& names) {
        return variable(names.ranks) && variable(names.rank) &&
               (!names.mark || variable(names.mark)) && names.in_charge();
      });
  if (found == std::end(kLaunchers)) {
    if (variable("WORLD_SIZE") && count_of("WORLD_SIZE") > 1)
      throw ConfigError("WORLD_SIZE", "is in the environment, but RANK is not", "set both or none");
    return launch;
  }
  launch.launcher = found->launcher;
  launch.ranks = std::max(1, count_of(found->ranks));
  launch.rank = count_of(found->rank);
  launch.local_rank = optional_count(found->local_rank);
  launch.local_size = optional_count(found->local_size);
  // A launcher that starts processes by itself may offer PMIx to them.
  const bool may_have_pmix = launch.launcher == "srun" || launch.launcher == "flux";
  launch.has_mpi = found->has_mpi || (may_have_pmix && variable("PMIX_RANK"));
  check(launch, *found);
  complete(launch);
  launch.srun_pmi2 = launch.launcher == "mpiexec" && !variable("PMIX_RANK") && is_srun(launch);
  return launch;
}

MeetingPoint read_meeting_point(const Launch& launch) {
  MeetingPoint point;
  const char* address = variable("MASTER_ADDR");
  const char* hosts = variable("SLURM_STEP_NODELIST");
  const bool one_host = launch.local_size == launch.ranks;
  if (address) {
    point.address = address;
  } else if (hosts && !one_host && launch.launcher != "jsrun" && launch.launcher != "flux") {
    point.address = first_host(hosts);
  } else if (one_host || (!launch.local_size && launch.launcher != "flux")) {
    point.address = "127.0.0.1";
  } else {
    throw ConfigError("MASTER_ADDR",
                      concat("is not in the environment, and ", launch.launcher, " started ",
                             launch.ranks, " processes on several hosts without MPI"),
                      "set it to the host of rank 0, or start with an MPI that the launcher knows");
  }
  point.port = port_of_job();
  if (const char* text = variable("MASTER_PORT")) {
    const std::optional<uint64_t> port = to_number(text);
    if (!port || *port < 1 || *port > 65535) {
      throw ConfigError("MASTER_PORT", concat("the environment has '", text, "', which is no port"),
                        "ports are numbers from 1 to 65535");
    }
    point.port = static_cast<uint16_t>(*port);
  }
  return point;
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

std::optional<int> number_on_node(std::string_view list, int64_t node) {
  while (!list.empty()) {
    std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    uint64_t times = 1;
    if (entry.ends_with(")")) {  // "2(x3)"
      const size_t open = entry.find("(x");
      if (open == std::string_view::npos) return std::nullopt;
      const auto repeated = to_number(entry.substr(open + 2, entry.size() - open - 3));
      if (!repeated) return std::nullopt;
      times = *repeated;
      entry = entry.substr(0, open);
    }
    const std::optional<uint64_t> number = to_number(entry);
    if (!number || *number > INT_MAX) return std::nullopt;
    if (static_cast<uint64_t>(node) < times) return static_cast<int>(*number);
    node -= static_cast<int64_t>(times);
  }
  return std::nullopt;
}

}  // namespace aifs::parallel
