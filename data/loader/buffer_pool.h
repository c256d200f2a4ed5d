// SPDX-License-Identifier: Apache-2.0
// Memory for batches: allocated once, touched at once, used again by whoever reads next (training,
// validation, the next epoch). Fresh memory costs more time than reading into it does.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace aifs::data {

class BufferPool {
 public:
  // For a GPU the memory is page-locked, so that copies to it need not wait.
  explicit BufferPool(c10::Device device = c10::Device(c10::kCPU));

  // At least `bytes`, of any content, at the start of a page; back in the pool when the last holder
  // lets go, who may do so after the pool itself has gone. Buffers that are too small for a request
  // which no other one fits are given back to the system first. Thread-safe. Throws Error naming
  // what sets the size if the system has no memory.
  std::shared_ptr<std::byte> take(int64_t bytes);

  // Returns the bytes of all buffers, used and free.
  int64_t num_bytes() const;
  int64_t num_allocations() const;  // since the pool was made

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace aifs::data
