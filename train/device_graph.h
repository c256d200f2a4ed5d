// SPDX-License-Identifier: Apache-2.0
// Device work that is recorded once and launched as a whole from then on (a CUDA graph), so that
// the host does not launch kernels one by one. Only in builds with CUDA, on a stream of the
// caller's own.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace aifs::train {

class DeviceGraph {
 public:
  // Runs `work` on the host while its device work is recorded, not carried out: `work` may not wait
  // for the device or copy from the host. What it allocates lives in the memory of the graph: of
  // `other`, too, if one is given; what is left of its work in between may be overwritten then.
  // Throws Error with the reason if something cannot be recorded; nothing has happened then.
  explicit DeviceGraph(const std::function<void()>& work, const DeviceGraph* other = nullptr);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  // On the current stream.
  void launch();

  // The largest share of the current device's memory that tensors have had, 0 ... 1.
  static double peak_memory_share();

 private:
  struct Recorded;
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace aifs::train
