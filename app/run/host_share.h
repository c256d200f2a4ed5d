// SPDX-License-Identifier: Apache-2.0
// The memory in which ranks of a host that share samples read together.
#pragma once

#include <memory>

#include "app/run/data_parts.h"
#include "data/host_share.h"
#include "data/loader/data_loader.h"
#include "data/loader/page_lock.h"
#include "parallel/communicator.h"
#include "parallel/process_mesh.h"

namespace aifs::app {

struct SharedReading {
  std::shared_ptr<data::HostShare> memory;  // null: each rank reads for itself
  std::unique_ptr<data::PageLock> lock;     // on GPUs; goes before the memory
};

// What a process has of its machine.
struct MachineShare {
  int64_t processes = 1;  // of this run on the machine, itself included
  int64_t cores = 1;      // its share of those that it may use
};

// Returns that of each rank of `world`. Collective.
MachineShare share_of_machine(parallel::Communicator& world);

// For batches of `data` with up to `rollout` forecast steps. Nothing where a rank has its samples
// for itself, where ranks of a sample are on several hosts, or where the system has no room, which
// is said in the log. Collective over the ranks of a sample.
SharedReading share_reading(const RunConfig& config, const DataParts& data, int64_t rollout,
                            const parallel::ProcessMesh& mesh, const c10::Device& device,
                            const MachineShare& machine);

// Threads that read, where the configuration leaves it open: two on a CPU, which has other work for
// its cores, and on a GPU those of `cores` that are left, up to eight.
int64_t reader_threads(const data::DataOptions& options, const c10::Device& device, int64_t cores);

// How batches are read, but for the cells, where `loaders` of each process of this machine read
// alike. Threads are those of the process: the caller shares them among the loaders.
data::LoaderOptions loader_options(const data::DataOptions& options, const c10::Device& device,
                                   const MachineShare& machine, int64_t loaders = 1);

}  // namespace aifs::app
