// SPDX-License-Identifier: Apache-2.0
#include "app/run/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <cstdlib>

#include "core/check.h"

#ifdef AIFS_HAVE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#endif

namespace aifs::app {

namespace {

int64_t num_gpus() {
#ifdef AIFS_HAVE_CUDA
  return c10::cuda::device_count();  // 0, without a message, where there is no driver
#else
  return 0;
#endif
}

ConfigError no_gpu() {
#ifdef AIFS_HAVE_CUDA
  return {"run.device", "no GPU is visible to this process",
          "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use \"cpu\""};
#else
  return {"run.device", "this program was built without CUDA",
          "build it with -DAIFS_ENABLE_CUDA=ON, or use \"cpu\""};
#endif
}

// Returns what the environment says about the GPUs that a process may see.
std::string visible_devices() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  return value ? concat("CUDA_VISIBLE_DEVICES is '", value, "'")
               : std::string("CUDA_VISIBLE_DEVICES is not set");
}

}  // namespace

int64_t own_gpu(int64_t visible, int64_t local_rank) {
  if (visible == 1) return 0;
  if (local_rank < visible) return local_rank;
  throw ConfigError(
      "run.device",
      concat("process ", local_rank, " of this host (from 0) has no GPU: it sees ", visible, ", ",
             visible_devices()),
      "start one process per GPU; let each see all GPUs of the host, or its own only");
}

std::string gpu_address([[maybe_unused]] const c10::Device& device) {
#ifdef AIFS_HAVE_CUDA
  if (!device.is_cuda()) return "";
  std::array<char, 32> address{};
  if (cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device.index()) ==
      cudaSuccess)
    return address.data();
  return concat("GPU ", int{device.index()});
#else
  return "";
#endif
}

void check_gpus(const std::vector<std::string>& hosts, const std::vector<std::string>& addresses) {
  for (size_t rank = 1; rank < addresses.size(); ++rank) {
    if (addresses[rank].empty() != addresses[0].empty()) {
      throw ConfigError("run.device",
                        concat("rank ", addresses[0].empty() ? rank : 0, " has a GPU, rank ",
                               addresses[0].empty() ? 0 : rank, " sees none"),
                        "look at nvidia-smi and CUDA_VISIBLE_DEVICES on all hosts, or use \"cpu\"");
    }
    for (size_t other = 0; other < rank && !addresses[rank].empty(); ++other) {
      if (hosts[other] != hosts[rank] || addresses[other] != addresses[rank]) continue;
      throw ConfigError("run.device",
                        concat("ranks ", other, " and ", rank, " have the same GPU, ",
                               addresses[rank], "; ", visible_devices()),
                        "start one process per GPU, and let each see all GPUs of the host or "
                        "another one");
    }
  }
}

c10::Device choose_device(DeviceChoice choice, int64_t local_rank) {
  const int64_t count = choice == DeviceChoice::kCpu ? 0 : num_gpus();
  if (count == 0) {
    if (choice == DeviceChoice::kCuda) throw no_gpu();
    return at::kCPU;
  }
  const c10::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(own_gpu(count, local_rank)));
  use_device(device);
#ifdef AIFS_HAVE_CUDA
  c10::cuda::setCurrentCUDAStream(
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()));
#endif
  return device;
}

void use_device([[maybe_unused]] const c10::Device& device) {
#ifdef AIFS_HAVE_CUDA
  if (device.is_cuda()) c10::cuda::set_device(device.index());
#endif
}

void wait_for(const c10::Device& device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeDevice(device.index());
}

void set_arithmetic(train::Precision precision, const c10::Device& device) {
  if (precision == train::Precision::kTf32 && !device.is_cuda()) {
    throw ConfigError("train.precision",
                      "tf32 is an arithmetic of GPUs, and this run is on the CPU", "use fp32");
  }
  at::globalContext().setAllowTF32CuBLAS(precision == train::Precision::kTf32);
  // Sums of products are rounded to bfloat16 once, at the end.
  at::globalContext().setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  at::globalContext().setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false);
}

std::string device_name(const c10::Device& device) {
  if (!device.is_cuda()) return "CPU";
#ifdef AIFS_HAVE_CUDA
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device.index()) == cudaSuccess) return properties.name;
#endif
  return "GPU";
}

}  // namespace aifs::app
