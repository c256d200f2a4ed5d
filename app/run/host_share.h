// SPDX-License-Identifier: Apache-2.0
// The memory in which ranks of a host that share samples read together.
#pragma once

#include <memory>

#include "app/run/data_parts.h"
#include "data/host_share.h"
#include "data/loader/data_loader.h"
#include "data/loader/page_lock.h"
#include "parallel/process_mesh.h"

namespace aifs::app {

struct SharedReading {
  std::shared_ptr<data::HostShare> memory;  // null: each rank reads for itself
  std::unique_ptr<data::PageLock> lock;     // on GPUs; goes before the memory
};

// For batches of `data` with up to `rollout` forecast steps, where `processes` of this run are on
// this machine. Nothing where a rank has its samples
// for itself, where ranks of a sample are on several hosts, or where the system has no room, which
// is said in the log. Collective over the ranks of a sample.
SharedReading share_reading(const RunConfig& config, const DataParts& data, int64_t rollout,
                            const parallel::ProcessMesh& mesh, const c10::Device& device,
                            int64_t processes);

// How batches are read, but for the cells; `processes` of this machine read alike.
data::LoaderOptions loader_options(const data::DataOptions& options, const c10::Device& device,
                                   int64_t processes);

// Returns the number for the ranks of `world`. Collective.
int64_t processes_on_machine(parallel::Communicator& world);

}  // namespace aifs::app
