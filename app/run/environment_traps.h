// SPDX-License-Identifier: Apache-2.0
// Settings of the environment and of GPUs that slow a run down or stand in its way, and that nobody
// notices: said once, when it starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/nvml.h"

namespace aifs::app {

struct Surroundings {
  bool on_gpu = false;
  int64_t num_hosts = 1;
  std::vector<GpuState> gpus = {};                        // of the run, on this host
  std::function<const char*(const char*)> variable = {};  // as std::getenv()
  std::filesystem::path root = "/";                       // of the system's files
};

// A sentence for each trap, with what to do.
std::vector<std::string> environment_traps(const Surroundings& surroundings);

}  // namespace aifs::app
