// SPDX-License-Identifier: Apache-2.0
// Use, memory, power, clocks and faults of NVIDIA GPUs, by the library that comes with their driver
// (NVML, libnvidia-ml.so.1). It is loaded when it is first asked for; where it is not there, or is
// older than a function, what it would have said is missing and nothing fails.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace aifs {

struct GpuState {
  std::string address;  // of the PCI bus: "0000:1b:00.0", lower case
  std::string name;
  std::optional<double> use;  // share of the last moments in which something ran
  std::optional<double> memory_gib, memory_total_gib;
  std::optional<double> power_w, power_limit_w, default_power_limit_w;
  std::optional<double> temperature_c, clock_mhz;
  std::vector<std::string> slowed_by;  // "power cap", "heat", ...: why clocks are lower just now
  std::optional<int64_t> ecc_corrected, ecc_uncorrected;  // errors of memory since the driver began
  bool is_divided = false;                                // MIG
};

// A fault that the driver reports by number (Xid).
struct GpuFault {
  std::string address;
  int64_t xid = 0;
};

class Nvml {
 public:
  // GPUs of this host with these addresses; none given: all. Null where there is no library, or it
  // knows of no such GPU.
  static std::unique_ptr<Nvml> open(const std::vector<std::string>& addresses);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::vector<GpuState> read() const;
  // Those since the last call.
  std::vector<GpuFault> new_faults();

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
};

}  // namespace aifs
