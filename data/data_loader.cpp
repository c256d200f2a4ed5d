// SPDX-License-Identifier: Apache-2.0
#include "data/data_loader.h"

#include <ATen/ATen.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

namespace {

[[noreturn]] void throw_nan(const Dataset& dataset, NodeRange nodes, int64_t row, int64_t at) {
  const DatasetInfo& info = dataset.info();
  const int64_t width = info.num_variables();
  const std::string remark = dataset.remark(row);
  throw DataError(
      concat("'", info.name, "': variable '", info.variables[static_cast<size_t>(at % width)],
             "' is NaN on ", format_date(info.dates_s[static_cast<size_t>(row)]), " in cell ",
             nodes.begin + at / width % nodes.size(), remark.empty() ? "" : concat(": ", remark)),
      "fill it with data.imputer, drop it, or list the date as missing");
}

void read_sample(const SampleSource& source, NodeRange nodes, int64_t anchor,
                 const std::vector<int64_t>& offsets, std::span<float> sample,
                 std::span<uint8_t> nan_mask) {
  const DatasetInfo& info = source.dataset->info();
  const SampleShape shape{static_cast<int64_t>(offsets.size()), info.ensemble_size, nodes.size(),
                          info.num_variables()};
  const auto slab = static_cast<size_t>(shape.size() / shape.times);
  for (size_t t = 0; t < offsets.size(); ++t) {
    source.dataset->read(anchor + offsets[t], nodes, sample.subspan(t * slab, slab));
  }
  if (!source.imputer.empty()) source.imputer.forward(sample, shape, nan_mask);
  for (size_t t = 0; t < offsets.size(); ++t) {
    const int64_t at = first_nan(sample.subspan(t * slab, slab));
    if (at >= 0) throw_nan(*source.dataset, nodes, anchor + offsets[t], at);
  }
  source.remapper.forward(sample);
  source.normaliser.forward(sample);
}

}  // namespace

Batch read_batch(const SampleSource& source, const LoaderOptions& options,
                 const BatchRequest& request) {
  const std::vector<int64_t>& anchors = request.anchors;
  const DatasetInfo& info = source.dataset->info();
  const auto size = static_cast<int64_t>(anchors.size());
  const auto times = static_cast<int64_t>(request.offsets.size());
  const int64_t nodes = options.nodes.size(), width = info.num_variables();
  const auto tensor_options = at::TensorOptions().pinned_memory(options.pin_memory);
  Batch batch;
  batch.anchors = anchors;
  batch.values = at::empty({size, times, info.ensemble_size, nodes, width}, tensor_options);
  std::span<uint8_t> masks;
  if (!source.imputer.empty()) {
    batch.nan_mask = at::empty({size, nodes, width}, tensor_options.dtype(at::kByte));
    masks = {batch.nan_mask.data_ptr<uint8_t>(), static_cast<size_t>(batch.nan_mask.numel())};
  }
  const auto sample_size = static_cast<size_t>(batch.values.numel() / std::max<int64_t>(size, 1));
  const auto mask_size = static_cast<size_t>(nodes * width);
  for (size_t b = 0; b < anchors.size(); ++b) {
    read_sample(source, options.nodes, anchors[b], request.offsets,
                {batch.values.data_ptr<float>() + b * sample_size, sample_size},
                masks.empty() ? masks : masks.subspan(b * mask_size, mask_size));
  }
  return batch;
}

struct DataLoader::State {
  const SampleSource& source;
  const LoaderOptions options;
  const std::vector<BatchRequest> batches;

  std::mutex mutex;
  std::condition_variable room, ready;
  size_t next_to_read = 0;
  size_t next_to_deliver = 0;
  bool stopping = false;
  std::map<size_t, std::pair<Batch, std::exception_ptr>> finished;
  double waited_s = 0.0;
  std::vector<std::jthread> threads;

  State(const SampleSource& source_, LoaderOptions options_, std::vector<BatchRequest> batches_)
      : source(source_), options(std::move(options_)), batches(std::move(batches_)) {}

  // Also reached when a thread cannot be started: those that were must not wait for ever.
  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    room.notify_all();
    threads.clear();  // joins
  }

  void work() {
    for (;;) {
      size_t ticket = 0;
      {
        std::unique_lock lock(mutex);
        room.wait(lock, [&] {
          return stopping || next_to_read == batches.size() ||
                 next_to_read < next_to_deliver + static_cast<size_t>(options.prefetch_batches);
        });
        if (stopping || next_to_read == batches.size()) return;
        ticket = next_to_read++;
      }
      Batch batch;
      std::exception_ptr error;
      try {
        batch = read_batch(source, options, batches[ticket]);
      } catch (...) {
        error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex);
        finished.emplace(ticket, std::make_pair(std::move(batch), error));
      }
      ready.notify_all();
    }
  }
};

DataLoader::DataLoader(const SampleSource& source, LoaderOptions options,
                       std::vector<BatchRequest> requests)
    : state_(std::make_unique<State>(source, std::move(options), std::move(requests))) {
  AIFS_CHECK(state_->options.threads > 0 && state_->options.prefetch_batches > 0,
             "bad loader options");
  try {
    for (int64_t i = 0; i < state_->options.threads; ++i) {
      state_->threads.emplace_back([state = state_.get()] { state->work(); });
    }
  } catch (const std::system_error& error) {
    throw Error(concat("cannot start ", state_->options.threads,
                       " reader threads: ", error.code().message()),
                "lower data.threads, or raise the limit of processes (ulimit -u)");
  }
}

DataLoader::~DataLoader() = default;

bool DataLoader::next(Batch& batch) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.next_to_deliver == state.batches.size()) return false;
  const auto start = std::chrono::steady_clock::now();
  state.ready.wait(lock, [&] { return state.finished.count(state.next_to_deliver) != 0; });
  state.waited_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto node = state.finished.extract(state.next_to_deliver++);
  lock.unlock();
  state.room.notify_all();
  if (node.mapped().second) std::rethrow_exception(node.mapped().second);
  batch = std::move(node.mapped().first);
  return true;
}

double DataLoader::wait_s() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waited_s;
}

}  // namespace aifs::data
