// SPDX-License-Identifier: Apache-2.0
#include "app/run/environment_traps.h"

#include <cmath>
#include <string_view>
#include <system_error>

#include "core/check.h"

namespace aifs::app {

namespace {

struct Variable {
  const char* name;
  std::vector<std::string_view> values;  // that are traps; empty: any but "0" and ""
  bool needs_hosts;                      // matters between hosts only
  const char* effect;
};

const std::vector<Variable>& variables() {
  static const std::vector<Variable> all{
      {"CUDA_LAUNCH_BLOCKING", {}, false, "the host waits for every kernel: steps are far slower"},
      {"NCCL_DEBUG",
       {"INFO", "TRACE", "info", "trace"},
       false,
       "NCCL writes of every operation, which takes time and disk; WARN is enough"},
      {"NCCL_P2P_DISABLE", {}, false, "GPUs of a host exchange through its memory"},
      {"NCCL_SHM_DISABLE", {}, false, "GPUs of a host may exchange over the network"},
      {"NCCL_IB_DISABLE", {}, true, "hosts exchange over TCP in place of InfiniBand"},
      {"PYTORCH_NO_CUDA_MEMORY_CACHING", {}, false, "every tensor asks the driver for its memory"},
  };
  return all;
}

bool is_trap(const Variable& variable, const char* value) {
  if (!value) return false;
  const std::string_view text(value);
  if (variable.values.empty()) return !text.empty() && text != "0";
  for (const std::string_view trap : variable.values)
    if (text == trap) return true;
  return false;
}

bool has_entries(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator first(folder, error);
  return !error && first != std::filesystem::directory_iterator();
}

void add_gpu_traps(const GpuState& gpu, std::vector<std::string>& traps) {
  if (gpu.is_divided)
    traps.push_back(concat("GPU ", gpu.address, " is divided (MIG): a run gets a part of it, and ",
                           "ranks on parts of a GPU cannot use NCCL with each other"));
  const bool is_capped = gpu.power_limit_w && gpu.default_power_limit_w &&
                         *gpu.power_limit_w < 0.99 * *gpu.default_power_limit_w;
  if (is_capped)
    traps.push_back(concat("the power of GPU ", gpu.address, " is limited to ",
                           std::round(*gpu.power_limit_w), " W of ",
                           std::round(*gpu.default_power_limit_w), " W: products are slower"));
}

}  // namespace

std::vector<std::string> environment_traps(const Surroundings& surroundings) {
  std::vector<std::string> traps;
  if (!surroundings.on_gpu) return traps;
  for (const Variable& variable : variables()) {
    const char* value = surroundings.variable(variable.name);
    if (variable.needs_hosts && surroundings.num_hosts < 2) continue;
    if (is_trap(variable, value))
      traps.push_back(concat(variable.name, "=", value, " is set: ", variable.effect));
  }
  for (const GpuState& gpu : surroundings.gpus)
    add_gpu_traps(gpu, traps);
  if (surroundings.num_hosts > 1 && !has_entries(surroundings.root / "sys/class/infiniband"))
    traps.push_back(
        concat("the run has ", surroundings.num_hosts,
               " hosts, and this one has no InfiniBand adapter (/sys/class/infiniband): they "
               "exchange over TCP, unless NCCL has a plugin for their network"));
  return traps;
}

}  // namespace aifs::app
