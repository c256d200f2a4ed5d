// SPDX-License-Identifier: Apache-2.0
#include "app/run/host_share.h"

#include <algorithm>

#include "core/cores.h"
#include "core/host.h"
#include "core/log.h"
#include "parallel/gather_text.h"

namespace aifs::app {

int64_t reader_threads(const data::DataOptions& options, const c10::Device& device, int64_t cores) {
  constexpr int64_t kFewest = 2, kMost = 8;
  if (options.threads > 0) return options.threads;
  // One core is left for the thread that gives the GPU its work.
  return device.is_cuda() ? std::clamp<int64_t>(cores - 1, kFewest, kMost) : kFewest;
}

data::LoaderOptions loader_options(const data::DataOptions& options, const c10::Device& device,
                                   const MachineShare& machine, int64_t loaders) {
  return {.threads = reader_threads(options, device, machine.cores),
          .prefetch_batches = options.prefetch_batches,
          .memory_bytes = options.memory_mib << 20,
          .processes = machine.processes * loaders,
          .retries = options.retries,
          .device = device};
}

MachineShare share_of_machine(parallel::Communicator& world) {
  const Cores own = cores_of_process();
  const std::string machine = machine_identity() + "\n";
  std::vector<Cores> on_machine;
  for (const std::string& text : parallel::gather_text(world, machine + to_text(own)))
    if (text.starts_with(machine))
      on_machine.push_back(cores_from_text(text.substr(machine.size())));
  return {static_cast<int64_t>(on_machine.size()), share_of_cores(own, on_machine)};
}

SharedReading share_reading(const RunConfig& config, const DataParts& data, int64_t rollout,
                            const parallel::ProcessMesh& mesh, const c10::Device& device,
                            const MachineShare& machine) {
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
  // The memory of all these ranks together; the first one decides for all.
  const MachineShare of_group{machine.processes / group.size(), machine.cores};
  data::LoaderOptions together = loader_options(config.data, device, of_group);
  together.memory_bytes *= group.size();
  const int64_t slots = std::stoll(
      parallel::gather_text(group, std::to_string(data::num_buffers(together, bytes))).front());
  const data::HostShare::Place place{group.rank(), group.size(), {0, info.num_nodes()}};
  SharedReading shared;
  if (slots > 1 && group.rank() == 0) shared.memory = data::HostShare::create(place, slots, bytes);
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
  if (device.is_cuda()) {
    shared.lock =
        std::make_unique<data::PageLock>(shared.memory->memory(), shared.memory->memory_bytes());
  }
  return shared;
}

}  // namespace aifs::app
