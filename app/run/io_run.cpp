// SPDX-License-Identifier: Apache-2.0
#include "app/run/io_run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "app/run/data_parts.h"
#include "app/run/device.h"
#include "app/run/failure.h"
#include "app/run/host_share.h"
#include "app/run/make_data.h"
#include "app/run/signals.h"
#include "core/check.h"
#include "core/log.h"
#include "core/seconds_since.h"
#include "core/shares.h"
#include "data/loader/buffer_pool.h"
#include "data/loader/device_feed.h"
#include "parallel/gather_text.h"
#include "parallel/process_mesh.h"
#include "parallel/together.h"
#include "train/epoch_requests.h"

namespace aifs::app {

namespace {

using Clock = std::chrono::steady_clock;

// Describes what this rank has read.
struct Figures {
  int64_t steps = 0, samples = 0, bytes = 0;
  double seconds = 0.0, wait_s = 0.0, busy_s = 0.0;
};

// Sums over all ranks; samples count once for all ranks that share them.
std::string text_of(const Figures& own, const parallel::ProcessMesh& mesh, int64_t threads) {
  const double of_sample =
      static_cast<double>(mesh.world().size()) / static_cast<double>(mesh.sizes().data);
  const std::vector<double> sums =
      parallel::sum_over(mesh.world(), {static_cast<double>(own.samples) / of_sample,
                                        static_cast<double>(own.bytes), own.busy_s, own.seconds});
  const double ranks = static_cast<double>(mesh.world().size());
  const double seconds = std::max(sums[3] / ranks, 1e-9);
  char text[160];
  std::snprintf(text, sizeof text,
                "%.2f samples/s, %.2f GB/s of fields, reader threads busy %.0f %%",
                sums[0] / seconds, 1e-9 * sums[1] / seconds,
                100.0 * sums[2] / (sums[3] * static_cast<double>(threads)));
  return text;
}

class Reading {
 public:
  Reading(const RunConfig& config, const parallel::ProcessMesh& mesh, const c10::Device& device)
      : config_(config),
        mesh_(mesh),
        device_(device),
        pool_(std::make_shared<data::BufferPool>(device)) {}

  void open() {
    data_ = make_data(config_, open_stores(config_));
    train::check_training_samples(data_.training->info(), data_.window,
                                  config_.train.longest_rollout());
  }
  // Collective.
  void share() {
    machine_ = share_of_machine(mesh_.world());
    shared_ =
        share_reading(config_, data_, config_.train.longest_rollout(), mesh_, device_, machine_);
  }
  void run();
  // Samples, rates. Collective.
  std::string summary() const {
    const std::string files = files_read(data_, mesh_.world());
    return concat(figures_.steps, " steps, ",
                  text_of(figures_, mesh_, loader_options(config_.data, device_, machine_).threads),
                  files.empty() ? "" : concat("; ", files));
  }

 private:
  enum class Turn { kBatch, kEnd, kStop };
  Turn next_batch(data::DeviceFeed& feed, data::Batch& batch) const;
  // False if it was left.
  bool read_epoch(int64_t epoch);
  data::NodeRange own_cells() const;

  const RunConfig& config_;
  const parallel::ProcessMesh& mesh_;
  c10::Device device_;
  DataParts data_;
  SharedReading shared_;
  MachineShare machine_;
  std::shared_ptr<data::BufferPool> pool_;
  Figures figures_;
};

data::NodeRange Reading::own_cells() const {
  const int64_t cells = data_.training->info().num_nodes();
  const std::vector<int64_t> starts = data::balanced_offsets(cells, mesh_.model().size());
  const auto rank = static_cast<size_t>(mesh_.model().rank());
  return {starts[rank], starts[rank + 1]};
}

// Ranks that read together leave together: after a batch, or because one of them was asked to stop
// or cannot read. The error is thrown where it arose.
Reading::Turn Reading::next_batch(data::DeviceFeed& feed, data::Batch& batch) const {
  bool stop = stop_requested(), more = false;
  std::exception_ptr error;
  try {
    more = feed.next(batch, stop_requested);
  } catch (const data::GivenUp&) {
    stop = true;
  } catch (...) {
    error = std::current_exception();
  }
  const bool left = parallel::on_any_rank(mesh_.world(), stop || error != nullptr);
  if (error) std::rethrow_exception(error);
  if (left) return Turn::kStop;
  return more ? Turn::kBatch : Turn::kEnd;
}

bool Reading::read_epoch(int64_t epoch) {
  const int64_t accumulate = config_.train.accumulate_batches;
  std::vector<data::BatchRequest> requests = train::requests_of_epoch(
      {data_.training->info(), data_.window, sampling_of(config_, mesh_), config_.train},
      {.step = figures_.steps, .epoch = epoch});
  if (config_.train.max_steps > 0) {
    const int64_t left = (config_.train.max_steps - figures_.steps) * accumulate;
    if (left < static_cast<int64_t>(requests.size())) requests.resize(static_cast<size_t>(left));
  }
  data::LoaderOptions loading = loader_options(config_.data, device_, machine_);
  loading.nodes = own_cells();
  loading.share = shared_.memory;
  loading.pool = pool_;
  const Figures before = figures_;
  const Clock::time_point start = Clock::now();
  data::DeviceFeed feed(data_.training_source, loading, std::move(requests), device_);
  int64_t batches = 0;
  for (data::Batch batch;;) {
    const Turn turn = next_batch(feed, batch);
    if (turn != Turn::kBatch) return turn == Turn::kEnd;
    figures_.samples += batch.values.size(0);
    figures_.bytes += static_cast<int64_t>(batch.values.nbytes());
    figures_.seconds = before.seconds + seconds_since(start);
    figures_.busy_s = before.busy_s + feed.busy_s();
    figures_.steps = before.steps + ++batches / accumulate;
    if (batches % accumulate == 0 && figures_.steps % config_.log.every_steps == 0 &&
        mesh_.world().size() == 1)
      log::info("step ", figures_.steps, ": ", text_of(figures_, mesh_, loading.threads));
  }
}

void Reading::run() {
  const train::TrainOptions& train = config_.train;
  const auto more = [&](int64_t epoch) {
    return (train.max_steps == 0 || figures_.steps < train.max_steps) &&
           (train.max_epochs == 0 || epoch < train.max_epochs);
  };
  for (int64_t epoch = 0; more(epoch) && read_epoch(epoch); ++epoch) {
  }
}

}  // namespace

void run_io(const RunConfig& config, parallel::Communicator& world, const c10::Device& device) {
  const parallel::ProcessMesh mesh(
      world, parallel::complete_sizes(config.parallel.sizes, world.size(), "parallel"));
  Reading reading(config, mesh, device);
  parallel::together(
      world, [&] { reading.open(); }, failure_handling());
  reading.share();
  defer_stops();
  parallel::together(
      world, [&] { reading.run(); }, failure_handling());
  log::info("read ", reading.summary());
}

}  // namespace aifs::app
