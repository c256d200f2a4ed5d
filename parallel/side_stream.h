// SPDX-License-Identifier: Apache-2.0
// A second queue of device work, so that communication and computation overlap. On the CPU work is
// done when it is given.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace aifs::parallel {

class SideStream {
 public:
  explicit SideStream(at::Device device);
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // Issues `work` to the side stream, to begin after all that the current stream was given before.
  void run(const std::function<void()>& work);
  // The memory of a tensor made elsewhere is not used again before the side stream is done with it.
  void keep(const at::Tensor& tensor) const;
  // What the current stream is given from here on begins after all work of the side stream.
  void join();

 private:
  struct Queue;  // null on the CPU
  std::unique_ptr<Queue> queue_;
};

// The memory of a tensor made on another stream is not used again before the current stream is done
// with what it was given.
void keep_for_current_stream(const at::Tensor& tensor);

}  // namespace aifs::parallel
