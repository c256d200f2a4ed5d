// SPDX-License-Identifier: Apache-2.0
#include "app/host_share.h"

#include <unistd.h>

#include <algorithm>

#include "core/host.h"
#include "core/log.h"
#include "parallel/gather_text.h"

namespace aifs::app {

namespace {

constexpr int64_t kMostSlots = 5;  // four batches ahead, one in use

// Batches that have room; 0: not even two.
int64_t num_slots(const data::DataOptions& options, int64_t batch_bytes) {
  const int64_t system =
      static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE) / 4;
  const int64_t memory = options.memory_mib > 0 ? options.memory_mib << 20 : system;
  const int64_t wanted = options.prefetch_batches > 0 ? options.prefetch_batches + 1 : kMostSlots;
  const int64_t slots = std::min(memory / batch_bytes, wanted);
  return slots < 2 ? 0 : slots;
}

}  // namespace

SharedReading share_reading(const RunConfig& config, const DataParts& data, int64_t rollout,
                            const parallel::ProcessMesh& mesh, bool on_gpu) {
  parallel::Communicator& group = mesh.model();
  const parallel::MeshSizes& sizes = mesh.sizes();
  const bool fits = config.data.share_on_host && !config.parallel.reproducible && sizes.model > 1 &&
                    sizes.tensor == 1 && sizes.pipeline == 1;
  if (!fits) return {};
  const std::vector<std::string> hosts = parallel::gather_text(group, host_identity());
  if (std::count(hosts.begin(), hosts.end(), hosts[0]) != static_cast<int64_t>(hosts.size()))
    return {};
  const data::DatasetInfo& info = data.training->info();
  const int64_t cells = info.num_nodes() * info.num_variables();
  const int64_t values =
      config.data.batch_size * data.window.num_times(rollout) * info.ensemble_size * cells;
  const int64_t bytes =
      4 * values + (config.data.imputer.empty() ? 0 : config.data.batch_size * cells);
  const int64_t slots = num_slots(config.data, bytes);
  const data::HostShare::Place place{group.rank(), group.size(), {0, info.num_nodes()}};
  SharedReading shared;
  if (slots > 0 && group.rank() == 0) shared.memory = data::HostShare::create(place, slots, bytes);
  const std::string name =
      parallel::gather_text(group, shared.memory ? shared.memory->name() : "").front();
  if (!name.empty() && group.rank() != 0)
    shared.memory = data::HostShare::open(name, place, slots, bytes);
  const bool failed = parallel::on_any_rank(group, shared.memory == nullptr);
  if (group.rank() == 0 && shared.memory) shared.memory->unlink_name();
  if (failed) {
    log::info("ranks of a host read for themselves: /dev/shm has no room for two batches of ",
              bytes >> 20, " MiB");
    return {};
  }
  if (on_gpu) {
    shared.lock =
        std::make_unique<data::PageLock>(shared.memory->memory(), shared.memory->memory_bytes());
  }
  return shared;
}

}  // namespace aifs::app
