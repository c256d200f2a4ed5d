// SPDX-License-Identifier: Apache-2.0
#include "train/output/gpu_log.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/check.h"

namespace aifs::train {

namespace {

using Json = nlohmann::ordered_json;

// A card that is short of power runs at what it has all the time; the rest is a fault.
bool is_trouble(const std::string& slowdown) {
  return slowdown != "power cap";
}

}  // namespace

Json to_json(const GpuState& gpu) {
  Json json{{"gpu", gpu.address}};
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value) json[key] = std::round(*value * 1e3) / 1e3;
  };
  add("use", gpu.use);
  add("memory_gib", gpu.memory_gib);
  add("memory_total_gib", gpu.memory_total_gib);
  add("power_w", gpu.power_w);
  add("power_limit_w", gpu.power_limit_w);
  add("temperature_c", gpu.temperature_c);
  add("clock_mhz", gpu.clock_mhz);
  if (!gpu.slowed_by.empty()) json["slowed_by"] = gpu.slowed_by;
  if (gpu.ecc_corrected) json["ecc_corrected"] = *gpu.ecc_corrected;
  if (gpu.ecc_uncorrected) json["ecc_uncorrected"] = *gpu.ecc_uncorrected;
  return json;
}

void GpuLog::look_at(const GpuState& gpu) {
  for (const std::string& slowdown : gpu.slowed_by) {
    if (is_trouble(slowdown) && said_.insert(gpu.address + slowdown).second)
      warnings_.push_back(
          concat("GPU ", gpu.address, " is slowed down by ", slowdown,
                 gpu.temperature_c ? concat(", ", *gpu.temperature_c, " degrees") : std::string(),
                 ": steps take longer; its host needs a look"));
  }
  if (!gpu.ecc_uncorrected) return;
  const auto [known, is_first] = lost_memory_.try_emplace(gpu.address, *gpu.ecc_uncorrected);
  if (*gpu.ecc_uncorrected > known->second)
    warnings_.push_back(concat("memory of GPU ", gpu.address, " has ",
                               *gpu.ecc_uncorrected - known->second,
                               " more uncorrected errors: results since the last sound checkpoint "
                               "may be wrong"));
  known->second = *gpu.ecc_uncorrected;
}

Json GpuLog::figures() {
  if (!nvml_) return nullptr;
  Json list = Json::array();
  for (const GpuState& gpu : nvml_->read()) {
    look_at(gpu);
    list.push_back(to_json(gpu));
  }
  for (const GpuFault& fault : nvml_->new_faults())
    warnings_.push_back(concat("the driver reports Xid ", fault.xid, " of GPU ", fault.address,
                               " (NVIDIA's \"XID errors\" says what it means)"));
  return list;
}

std::vector<std::string> GpuLog::take_warnings() {
  return std::exchange(warnings_, {});
}

}  // namespace aifs::train
