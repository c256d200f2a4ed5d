// SPDX-License-Identifier: Apache-2.0
#include "data/loader/device_feed.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/seconds_since.h"
#include "data/loader/fields_to_cells.h"

namespace aifs::data {

namespace {

using Clock = std::chrono::steady_clock;

LoaderOptions for_device(LoaderOptions options, const c10::Device& device) {
  options.device = device;
  options.layout = device.is_cpu() ? BatchLayout::kCells : BatchLayout::kFields;
  return options;
}

// (B, T, E, V, N) to (B, T, E, N, V), on the current stream.
at::Tensor cells_of(const at::Tensor& fields) {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> sizes = fields.sizes().vec();
  std::swap(sizes[3], sizes[4]);
  at::Tensor cells = at::empty(sizes, fields.options());
  const at::Tensor from = fields.flatten(0, 2), to = cells.flatten(0, 2);
  for (int64_t row = 0; row < from.size(0); ++row)
    fields_to_cells(from[row], to[row]);
  return cells;
}

}  // namespace

// One batch waits on the device for the caller, as fields; the thread brings the next one when it
// is taken. The caller's own stream turns fields into cells: a kernel beside those of a step that
// fill the GPU would slow them by more than it takes alone.
class DeviceFeed::Copies {
 public:
  Copies(DataLoader& loader, c10::Device device)
      : loader_(loader),
        device_(device),
        guard_(device.type()),
        stream_(guard_.getStreamFromGlobalPool(device)),
        thread_([this] { run(); }) {}
  ~Copies() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  bool take(Batch& out, const GiveUp& give_up);
  double wait_s() const {
    const std::lock_guard lock(mutex_);
    return waited_s_;
  }

 private:
  enum class Place { kEmpty, kFull, kEnd };

  void run();
  Batch copy(const Batch& host);
  at::Tensor fields_of(const at::Tensor& host);

  DataLoader& loader_;
  c10::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Place place_ = Place::kEmpty;
  Batch batch_;  // on the device, values (B, T, E, V, N); its copy has ended
  std::exception_ptr error_;
  bool stopping_ = false;
  double waited_s_ = 0.0;
  std::thread thread_;  // the last one: it uses the others
};

// (B, T, E, V, N) of the host, whose variables may lie apart, on the device.
at::Tensor DeviceFeed::Copies::fields_of(const at::Tensor& host) {
  at::Tensor fields = at::empty(host.sizes(), host.options().device(device_).pinned_memory(false));
  const at::Tensor from = host.flatten(0, 2), to = fields.flatten(0, 2);
  for (int64_t row = 0; row < from.size(0); ++row)
    copy_fields(from[row], to[row]);
  return fields;
}

Batch DeviceFeed::Copies::copy(const Batch& host) {
  const at::NoGradGuard no_grad;
  const c10::DeviceGuard on_device(device_);
  const c10::StreamGuard on_side_stream(stream_);
  Batch batch;
  batch.anchors = host.anchors;
  batch.values = fields_of(host.values);
  if (host.nan_mask.defined())
    batch.nan_mask = host.nan_mask.to(device_, at::kByte, /*non_blocking=*/true);
  // The host's memory is free again, and the batch is there: nobody waits here but this thread.
  c10::Event copied(device_.type());
  copied.record(stream_);
  copied.synchronize();
  return batch;
}

void DeviceFeed::Copies::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || place_ == Place::kEmpty; });
      if (stopping_) return;
    }
    Batch batch;
    std::exception_ptr error;
    bool more = true;
    try {
      Batch host;
      more = loader_.next(host, [this] {
        const std::lock_guard lock(mutex_);
        return stopping_;
      });
      if (more) batch = copy(host);
    } catch (const GivenUp&) {
      return;
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      place_ = more ? Place::kFull : Place::kEnd;
      batch_ = std::move(batch);
      error_ = error;
    }
    changed_.notify_all();
    if (!more) return;
  }
}

bool DeviceFeed::Copies::take(Batch& out, const GiveUp& give_up) {
  constexpr auto kPatience = std::chrono::milliseconds(200);
  std::unique_lock lock(mutex_);
  const Clock::time_point start = Clock::now();
  bool given_up = false;
  while (!given_up && !changed_.wait_for(lock, kPatience, [&] { return place_ != Place::kEmpty; }))
    given_up = give_up && give_up();
  waited_s_ += seconds_since(start);
  if (given_up) throw GivenUp();
  if (place_ == Place::kEnd) {
    out = {};
    if (error_) std::rethrow_exception(error_);
    return false;
  }
  const std::exception_ptr error = std::exchange(error_, nullptr);
  out = std::exchange(batch_, {});
  place_ = Place::kEmpty;
  lock.unlock();
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
  // Their memory is the side stream's: it must not be used again before the caller has ended.
  const c10::Stream current = guard_.getStream(device_);
  for (const at::Tensor* tensor : {&out.values, &out.nan_mask}) {
    if (tensor->defined()) tensor->record_stream(current);
  }
  if (out.values.defined()) out.values = cells_of(out.values);
  return true;
}

DeviceFeed::DeviceFeed(const SampleSource& source, LoaderOptions options,
                       std::vector<BatchRequest> requests, c10::Device device)
    : loader_(source, for_device(std::move(options), device), std::move(requests)) {
  if (!device.is_cpu()) copies_ = std::make_unique<Copies>(loader_, device);
}

DeviceFeed::~DeviceFeed() = default;

void DeviceFeed::add(std::vector<BatchRequest> requests) {
  loader_.add(std::move(requests));
}

bool DeviceFeed::next(Batch& batch, const GiveUp& give_up) {
  if (!copies_) return loader_.next(batch, give_up);
  return copies_->take(batch, give_up);
}

double DeviceFeed::wait_s() const {
  return copies_ ? copies_->wait_s() : loader_.wait_s();
}

}  // namespace aifs::data
