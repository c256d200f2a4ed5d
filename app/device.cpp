// SPDX-License-Identifier: Apache-2.0
#include "app/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

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

}  // namespace

c10::Device choose_device(DeviceChoice choice, int64_t local_rank) {
  const int64_t count = choice == DeviceChoice::kCpu ? 0 : num_gpus();
  if (count == 0) {
    if (choice == DeviceChoice::kCuda) throw no_gpu();
    return at::kCPU;
  }
  if (local_rank >= count) {
    throw ConfigError(
        "run.device",
        concat("process ", local_rank, " of this host has no GPU: ", count, " visible"),
        "start one process per GPU");
  }
  const c10::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(local_rank));
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
