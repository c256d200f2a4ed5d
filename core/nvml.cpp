// SPDX-License-Identifier: Apache-2.0
// The few declarations of nvml.h (CUDA Toolkit, NVML API reference) that are used here.
#include "core/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace aifs {

namespace {

using Device = struct OpaqueDevice*;
using EventSet = struct OpaqueEventSet*;
using Result = int;  // 0: success

struct PciInfo {
  char legacy_address[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;  // bytes
};
struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

constexpr unsigned kTemperatureOfGpu = 0, kClockOfMultiprocessors = 1;
constexpr unsigned kCorrected = 0, kUncorrected = 1, kSinceDriverBegan = 0;
constexpr unsigned long long kXidEvent = 0x8;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

constexpr std::array<std::pair<unsigned long long, const char*>, 5> kSlowdowns{{
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x20, "heat"},
    {0x40, "heat (hardware)"},
    {0x80, "power brake"},
}};

// Addresses of CUDA have four digits of a domain where those of NVML have eight.
std::string short_address(std::string address) {
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const size_t colon = address.find(':');
  return colon != std::string::npos && colon > 4 ? address.substr(colon - 4) : address;
}

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  std::vector<Device> devices;
  std::vector<std::string> addresses;
  EventSet events = nullptr;

  ~Library() {
    if (!handle) return;
    if (events) call<EventSet>("nvmlEventSetFree", events);
    if (auto* end = function<>("nvmlShutdown")) end();
    ::dlclose(handle);
  }

  template <class... Args>
  Result (*function(const char* name) const)(Args...) {
    return reinterpret_cast<Result (*)(Args...)>(::dlsym(handle, name));
  }
  // False if the library has no such function, or it fails.
  template <class... Args>
  bool call(const char* name, Args... args) const {
    auto* called = function<Args...>(name);
    return called && called(args...) == 0;
  }
  template <class T>
  std::optional<double> number(const char* name, Device device, double unit) const {
    T value{};
    if (!call<Device, T*>(name, device, &value)) return std::nullopt;
    return static_cast<double>(value) * unit;
  }

  bool begin() {
    handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return false;
    if (call<>("nvmlInit_v2")) return true;
    ::dlclose(std::exchange(handle, nullptr));
    return false;
  }

  void find(const std::vector<std::string>& wanted) {
    unsigned count = 0;
    if (!call<unsigned*>("nvmlDeviceGetCount_v2", &count)) return;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      PciInfo info{};
      if (!call<unsigned, Device*>("nvmlDeviceGetHandleByIndex_v2", i, &device)) continue;
      if (!call<Device, PciInfo*>("nvmlDeviceGetPciInfo_v3", device, &info)) continue;
      info.address[sizeof info.address - 1] = '\0';
      const std::string address = short_address(info.address);
      const bool is_wanted =
          wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& own) {
            return short_address(own) == address;
          });
      if (!is_wanted) continue;
      devices.push_back(device);
      addresses.push_back(address);
    }
    if (!call<EventSet*>("nvmlEventSetCreate", &events)) events = nullptr;
    for (Device device : devices)
      if (events)
        call<Device, unsigned long long, EventSet>("nvmlDeviceRegisterEvents", device, kXidEvent,
                                                   events);
  }

  std::optional<int64_t> errors(Device device, unsigned kind) const {
    unsigned long long count = 0;
    if (!call<Device, unsigned, unsigned, unsigned long long*>(
            "nvmlDeviceGetTotalEccErrors", device, kind, kSinceDriverBegan, &count))
      return std::nullopt;
    return static_cast<int64_t>(count);
  }

  void read_clocks(Device device, GpuState& state) const {
    unsigned value = 0;
    if (call<Device, unsigned, unsigned*>("nvmlDeviceGetTemperature", device, kTemperatureOfGpu,
                                          &value))
      state.temperature_c = value;
    if (call<Device, unsigned, unsigned*>("nvmlDeviceGetClockInfo", device, kClockOfMultiprocessors,
                                          &value))
      state.clock_mhz = value;
    unsigned long long reasons = 0;
    if (!call<Device, unsigned long long*>("nvmlDeviceGetCurrentClocksThrottleReasons", device,
                                           &reasons))
      return;
    for (const auto& [bit, text] : kSlowdowns)
      if (reasons & bit) state.slowed_by.emplace_back(text);
  }

  GpuState read(size_t i) const {
    Device device = devices[i];
    GpuState state;
    state.address = addresses[i];
    std::array<char, 96> name{};
    if (call<Device, char*, unsigned>("nvmlDeviceGetName", device, name.data(), name.size() - 1))
      state.name = name.data();
    Utilization use{};
    if (call<Device, Utilization*>("nvmlDeviceGetUtilizationRates", device, &use))
      state.use = use.gpu / 100.0;
    Memory memory{};
    if (call<Device, Memory*>("nvmlDeviceGetMemoryInfo", device, &memory)) {
      state.memory_gib = static_cast<double>(memory.used) / kGiB;
      state.memory_total_gib = static_cast<double>(memory.total) / kGiB;
    }
    state.power_w = number<unsigned>("nvmlDeviceGetPowerUsage", device, 1e-3);
    state.power_limit_w = number<unsigned>("nvmlDeviceGetEnforcedPowerLimit", device, 1e-3);
    state.default_power_limit_w =
        number<unsigned>("nvmlDeviceGetPowerManagementDefaultLimit", device, 1e-3);
    read_clocks(device, state);
    state.ecc_corrected = errors(device, kCorrected);
    state.ecc_uncorrected = errors(device, kUncorrected);
    unsigned mig = 0, pending = 0;
    if (call<Device, unsigned*, unsigned*>("nvmlDeviceGetMigMode", device, &mig, &pending))
      state.is_divided = mig != 0;
    return state;
  }
};

std::unique_ptr<Nvml> Nvml::open(const std::vector<std::string>& addresses) {
  auto library = std::make_unique<Library>();
  if (!library->begin()) return nullptr;
  library->find(addresses);
  if (library->devices.empty()) return nullptr;
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::~Nvml() = default;

std::vector<GpuState> Nvml::read() const {
  std::vector<GpuState> states;
  for (size_t i = 0; i < library_->devices.size(); ++i)
    states.push_back(library_->read(i));
  return states;
}

std::vector<GpuFault> Nvml::new_faults() {
  constexpr int kMost = 64;  // at a time
  std::vector<GpuFault> faults;
  EventData event{};
  while (library_->events && std::ssize(faults) < kMost &&
         library_->call<EventSet, EventData*, unsigned>("nvmlEventSetWait_v2", library_->events,
                                                        &event, 0)) {
    const auto& devices = library_->devices;
    const auto found = std::find(devices.begin(), devices.end(), event.device);
    if (event.type == kXidEvent && found != devices.end())
      faults.push_back({library_->addresses[static_cast<size_t>(found - devices.begin())],
                        static_cast<int64_t>(event.data)});
  }
  return faults;
}

}  // namespace aifs
