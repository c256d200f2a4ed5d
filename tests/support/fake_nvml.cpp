// SPDX-License-Identifier: Apache-2.0
// A library in place of NVIDIA's libnvidia-ml.so.1: two GPUs. The second one is divided (MIG), has
// a power limit below its own, is slowed down by heat, loses memory with every look at it, and
// reports one fault (Xid 79). What it lacks are functions that older drivers lack.
#include <cstring>

namespace {

struct Gpu {
  int number;
};
Gpu gpus[2] = {{0}, {1}};
bool begun = false, fault_told = false;
unsigned long long lost = 0;

constexpr int kSuccess = 0, kUnknown = 999, kTimeout = 10;

}  // namespace

extern "C" {

struct PciInfo {
  char legacy_address[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};
struct EventData {
  Gpu* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2() {
  begun = true;
  return kSuccess;
}
int nvmlShutdown() {
  begun = false;
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return begun ? kSuccess : kUnknown;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu** gpu) {
  *gpu = &gpus[index];
  return kSuccess;
}
int nvmlDeviceGetPciInfo_v3(Gpu* gpu, PciInfo* info) {
  std::strcpy(info->address, gpu->number == 0 ? "00000000:1B:00.0" : "00000000:2B:00.0");
  return kSuccess;
}
int nvmlDeviceGetName(Gpu*, char* name, unsigned length) {
  std::strncpy(name, "Fake H200", length);
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(Gpu* gpu, unsigned* percent) {
  percent[0] = gpu->number == 0 ? 98 : 42;
  percent[1] = 10;
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(Gpu* gpu, unsigned long long* bytes) {
  bytes[0] = 141ull << 30;
  bytes[2] = (gpu->number == 0 ? 50ull : 60ull) << 30;
  bytes[1] = bytes[0] - bytes[2];
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(Gpu*, unsigned* mw) {
  *mw = 640000;
  return kSuccess;
}
int nvmlDeviceGetEnforcedPowerLimit(Gpu* gpu, unsigned* mw) {
  *mw = gpu->number == 0 ? 700000 : 500000;
  return kSuccess;
}
int nvmlDeviceGetPowerManagementDefaultLimit(Gpu*, unsigned* mw) {
  *mw = 700000;
  return kSuccess;
}
int nvmlDeviceGetTemperature(Gpu* gpu, unsigned, unsigned* degrees) {
  *degrees = gpu->number == 0 ? 55 : 91;
  return kSuccess;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Gpu* gpu, unsigned long long* reasons) {
  *reasons = gpu->number == 0 ? 0x4 : 0x4 | 0x20 | 0x1;
  return kSuccess;
}
int nvmlDeviceGetTotalEccErrors(Gpu* gpu, unsigned kind, unsigned, unsigned long long* count) {
  *count = gpu->number == 0 ? 0 : kind == 1 ? ++lost : 7;
  return kSuccess;
}
int nvmlDeviceGetMigMode(Gpu* gpu, unsigned* now, unsigned* pending) {
  *now = *pending = gpu->number == 1 ? 1 : 0;
  return kSuccess;
}
int nvmlEventSetCreate(void** set) {
  *set = gpus;
  return kSuccess;
}
int nvmlEventSetFree(void*) {
  return kSuccess;
}
int nvmlDeviceRegisterEvents(Gpu*, unsigned long long, void*) {
  return kSuccess;
}
int nvmlEventSetWait_v2(void*, EventData* data, unsigned) {
  if (fault_told) return kTimeout;
  fault_told = true;
  *data = {&gpus[1], 0x8, 79, 0, 0};
  return kSuccess;
}
}
