// SPDX-License-Identifier: Apache-2.0
#include "data/loader/buffer_pool.h"

#include <c10/core/DeviceGuard.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/check.h"
#include "core/file_io.h"
#include "data/loader/page_lock.h"

namespace aifs::data {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kPage = 4096;

int64_t round_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Pages of memory, all of them there.
class Block {
 public:
  Block(int64_t bytes, const c10::Device& device)
      : bytes_(round_up(std::max<int64_t>(bytes, 1), bytes < kHugePage ? kPage : kHugePage)) {
    void* memory = ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw Error(
          concat("no memory for a batch of ", (bytes_ >> 20) + 1, " MiB: ", system_error_text()),
          "lower data.memory_mib, data.prefetch_batches or data.batch_size");
    }
    memory_ = static_cast<std::byte*>(memory);
    ::madvise(memory_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);  // where the system has them
    for (int64_t at = 0; at < bytes_; at += kPage)
      memory_[at] = std::byte{0};
    if (device.is_cpu()) return;
    const c10::DeviceGuard on_device(device);
    lock_ = std::make_unique<PageLock>(memory_, static_cast<size_t>(bytes_));
  }
  ~Block() {
    lock_.reset();
    if (memory_) ::munmap(memory_, static_cast<size_t>(bytes_));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* memory() const { return memory_; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<PageLock> lock_;
};

}  // namespace

struct BufferPool::State : std::enable_shared_from_this<BufferPool::State> {
  explicit State(c10::Device device_) : device(device_) {}

  c10::Device device;
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Block>> free;
  int64_t used_bytes = 0, allocations = 0;

  std::unique_ptr<Block> take(int64_t bytes);
  void give_back(std::unique_ptr<Block> block) {
    const std::lock_guard lock(mutex);
    used_bytes -= block->bytes();
    free.push_back(std::move(block));
  }
};

// The smallest one that is large enough, for a large one may be wanted soon.
std::unique_ptr<Block> BufferPool::State::take(int64_t bytes) {
  std::vector<std::unique_ptr<Block>> too_small;  // freed without the mutex
  {
    const std::lock_guard lock(mutex);
    auto best = free.end();
    for (auto it = free.begin(); it != free.end(); ++it) {
      if ((*it)->bytes() < bytes) continue;
      if (best == free.end() || (*it)->bytes() < (*best)->bytes()) best = it;
    }
    if (best != free.end()) {
      std::unique_ptr<Block> block = std::move(*best);
      free.erase(best);
      used_bytes += block->bytes();
      return block;
    }
    too_small.swap(free);
  }
  too_small.clear();
  auto block = std::make_unique<Block>(bytes, device);
  const std::lock_guard lock(mutex);
  used_bytes += block->bytes();
  ++allocations;
  return block;
}

BufferPool::BufferPool(c10::Device device) : state_(std::make_shared<State>(device)) {}

std::shared_ptr<std::byte> BufferPool::take(int64_t bytes) {
  Block* block = state_->take(bytes).release();
  return {block->memory(),
          [state = state_, block](std::byte*) { state->give_back(std::unique_ptr<Block>(block)); }};
}

int64_t BufferPool::num_bytes() const {
  const std::lock_guard lock(state_->mutex);
  int64_t bytes = state_->used_bytes;
  for (const auto& block : state_->free)
    bytes += block->bytes();
  return bytes;
}

int64_t BufferPool::num_allocations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->allocations;
}

}  // namespace aifs::data
