// SPDX-License-Identifier: Apache-2.0
// What the GPUs of a host do while a run goes on: figures for metrics.jsonl, and a warning when one
// is slowed down by heat, loses memory or reports a fault.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/nvml.h"

namespace aifs::train {

class GpuLog {
 public:
  // Addresses of the GPUs; none: all of the host.
  explicit GpuLog(const std::vector<std::string>& addresses) : nvml_(Nvml::open(addresses)) {}

  // Null where there is nothing to be known.
  nlohmann::ordered_json figures();
  // What is new and that people should know, of the figures asked for last.
  std::vector<std::string> take_warnings();

 private:
  void look_at(const GpuState& gpu);

  std::unique_ptr<Nvml> nvml_;
  std::map<std::string, int64_t> lost_memory_;  // uncorrected errors, by address
  std::set<std::string> said_;
  std::vector<std::string> warnings_;
};

// A GPU as an object of metrics.jsonl; what is not known is left out.
nlohmann::ordered_json to_json(const GpuState& gpu);

}  // namespace aifs::train
