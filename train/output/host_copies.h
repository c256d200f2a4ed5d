// SPDX-License-Identifier: Apache-2.0
// Copies of tensors on the host, in one piece of memory that is allocated once and filled again and
// again. For tensors of a GPU it is page-locked, so that they arrive at the full speed of the bus.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace aifs::train {

class HostCopies {
 public:
  // Allocates memory for `bytes` of tensors; each takes up to 63 bytes more. `device` is where the
  // tensors are.
  HostCopies(int64_t bytes, at::Device device);
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Begins again: what copy() has returned so far is overwritten.
  void clear() { used_ = 0; }

  // Returns a contiguous copy of the values on the host. It is whole once wait() has returned after
  // end(). A tensor that the memory has no room for is copied to memory of its own.
  at::Tensor copy(const at::Tensor& tensor);
  // Ends the copies that wait() is to wait for: those of the current stream.
  void end();
  // Waits for them, in any thread.
  void wait() const;

 private:
  class Memory;
  struct Arrival;

  at::Device device_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Arrival> arrival_;  // null: nothing to wait for
  int64_t used_ = 0;
};

}  // namespace aifs::train
