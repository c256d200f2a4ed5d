// SPDX-License-Identifier: Apache-2.0
// A second queue of device work, so that the communication of a group overlaps with computation.
// Where no NCCL carries it (on the CPU, among the threads of a process) work is done when it is
// given, on the current stream.
#pragma once

#include <functional>

#include "parallel/communicator.h"

namespace aifs::parallel {

class SideStream {
 public:
  SideStream(const Communicator& group, at::Device device);
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // Issues `work` to the side stream, to begin after all that the current stream was given before.
  void run(const std::function<void()>& work);
  // The memory of a tensor made elsewhere is not used again before the side stream is done with it.
  void keep(const at::Tensor& tensor) const;
  // Lets what the current stream is given from here on begin after all work of the side stream.
  void join();

 private:
  struct Queue;  // null without NCCL
  std::unique_ptr<Queue> queue_;
};

// The memory of a tensor made on another stream is not used again before the current stream is done
// with what it was given.
void keep_for_current_stream(const at::Tensor& tensor);

}  // namespace aifs::parallel
