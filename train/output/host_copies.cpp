// SPDX-License-Identifier: Apache-2.0
#include "train/output/host_copies.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>

#include "data/loader/page_lock.h"

namespace aifs::train {

namespace {

constexpr int64_t kAlignment = 64;  // bytes, of each copy

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

class HostCopies::Memory {
 public:
  // Zeros, written by all threads: pages exist before they are locked, which is faster.
  Memory(int64_t bytes, bool locked) : bytes_(at::zeros({bytes}, at::kByte)) {
    if (locked)
      lock_ = std::make_unique<data::PageLock>(bytes_.data_ptr(), static_cast<size_t>(bytes));
  }

  // A tensor over the bytes from `offset` on; undefined where they do not suffice.
  at::Tensor part(int64_t offset, const at::Tensor& like) const {
    const auto size = static_cast<int64_t>(like.nbytes());
    if (offset + size > bytes_.size(0)) return {};
    return bytes_.narrow(0, offset, size).view(like.scalar_type()).view(like.sizes());
  }

 private:
  at::Tensor bytes_;
  std::unique_ptr<data::PageLock> lock_;  // goes before the memory
};

struct HostCopies::Arrival {
  explicit Arrival(at::Device device) : event(device.type()) {}
  c10::Event event;
};

HostCopies::HostCopies(int64_t bytes, at::Device device)
    : device_(device),
      memory_(std::make_unique<Memory>(std::max(bytes, kAlignment), device.is_cuda())) {}

HostCopies::~HostCopies() {
  try {
    wait();                          // a GPU may still be writing
  } catch (const std::exception&) {  // of a device that has failed, which others report
  }
}

at::Tensor HostCopies::copy(const at::Tensor& tensor) {
  const at::Tensor from = tensor.detach();
  at::Tensor to = from.numel() > 0 ? memory_->part(used_, from) : at::Tensor();
  if (!to.defined())
    return from.to(at::kCPU, from.scalar_type(), false, /*copy=*/true).contiguous();
  used_ += aligned(static_cast<int64_t>(from.nbytes()));
  to.copy_(from, /*non_blocking=*/true);
  return to;
}

void HostCopies::end() {
  if (device_.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  arrival_ = std::make_unique<Arrival>(device_);
  arrival_->event.record(guard.getStream(device_));
}

void HostCopies::wait() const {
  if (arrival_) arrival_->event.synchronize();
}

}  // namespace aifs::train
