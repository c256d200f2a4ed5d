// SPDX-License-Identifier: Apache-2.0
// Where a run computes, and how products are rounded there.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "app/run/run_config.h"

namespace aifs::app {

// The device of the process with this number on its host: the GPU with this number, or the only one
// that it sees, which batch systems give to each process (--gpus-per-task, --gpu-bind). A GPU
// becomes the current one, and work of this thread goes to a stream of its own, which can be
// recorded. Throws ConfigError if a GPU is asked for and there is none, or fewer than processes.
c10::Device choose_device(DeviceChoice choice, int64_t local_rank);

// The number of that GPU among the `visible` ones (at least one).
int64_t own_gpu(int64_t visible, int64_t local_rank);

// Returns what tells the GPU of this process on its host from others ("0000:1b:00.0"); empty for
// the CPU.
std::string gpu_address(const c10::Device& device);
// Throws ConfigError unless all ranks have a GPU, each another one, or none has. `hosts` and
// `addresses` are those of all ranks, in rank order.
void check_gpus(const std::vector<std::string>& hosts, const std::vector<std::string>& addresses);

// Makes a device the current one of this thread; threads start with the first GPU.
void use_device(const c10::Device& device);

// Returns when the device has done all it was given.
void wait_for(const c10::Device& device);

// Sets LibTorch's process-wide switches for this precision. Throws ConfigError if the device cannot
// do it.
void set_arithmetic(train::Precision precision, const c10::Device& device);

// "CPU", or the name of the card.
std::string device_name(const c10::Device& device);

}  // namespace aifs::app
