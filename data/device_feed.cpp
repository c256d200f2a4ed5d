// SPDX-License-Identifier: Apache-2.0
#include "data/device_feed.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <utility>

namespace aifs::data {

namespace {

LoaderOptions for_device(LoaderOptions options, const c10::Device& device) {
  options.pin_memory = options.pin_memory || !device.is_cpu();
  return options;
}

}  // namespace

struct DeviceFeed::Copies {
  c10::Device device;
  c10::impl::VirtualGuardImpl guard;
  c10::Stream stream;
  c10::Event copied;
  bool started = false;
  // The batch that is being copied, or the error in its place.
  bool waiting = false;
  Batch batch;
  std::exception_ptr error;

  explicit Copies(c10::Device device_)
      : device(device_),
        guard(device_.type()),
        stream(guard.getStreamFromGlobalPool(device_)),
        copied(device_.type()) {}

  at::Tensor start_copy(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true)
                            : tensor;
  }

  // The host allocator keeps page-locked memory until the copy is done, the device allocator the
  // result until the stream that uses it is.
  void fetch(DataLoader& loader, const GiveUp& give_up) {
    error = nullptr;
    try {
      Batch host;
      waiting = loader.next(host, give_up);
      if (!waiting) return;
      const c10::StreamGuard on_side_stream(stream);
      batch = {start_copy(host.values), start_copy(host.nan_mask), std::move(host.anchors)};
      copied.record(stream);
    } catch (...) {
      waiting = true;
      error = std::current_exception();
    }
  }

  bool take(DataLoader& loader, Batch& out, const GiveUp& give_up) {
    if (!std::exchange(started, true)) fetch(loader, give_up);
    if (!waiting) return false;
    if (error) std::rethrow_exception(error);
    const c10::Stream current = guard.getStream(device);
    copied.block(current);
    out = std::move(batch);
    for (const at::Tensor* tensor : {&out.values, &out.nan_mask}) {
      if (tensor->defined()) tensor->record_stream(current);
    }
    fetch(loader, give_up);
    return true;
  }
};

DeviceFeed::DeviceFeed(const SampleSource& source, LoaderOptions options,
                       std::vector<BatchRequest> requests, c10::Device device)
    : loader_(source, for_device(std::move(options), device), std::move(requests)) {
  if (!device.is_cpu()) copies_ = std::make_unique<Copies>(device);
}

DeviceFeed::~DeviceFeed() = default;

bool DeviceFeed::next(Batch& batch, const GiveUp& give_up) {
  if (!copies_) return loader_.next(batch, give_up);
  return copies_->take(loader_, batch, give_up);
}

double DeviceFeed::wait_s() const {
  return loader_.wait_s();
}

}  // namespace aifs::data
