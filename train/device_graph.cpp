// SPDX-License-Identifier: Apache-2.0
#include "train/device_graph.h"

#include "core/check.h"
#include "core/first_line.h"

#ifdef AIFS_HAVE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace aifs::train {

#ifdef AIFS_HAVE_CUDA

struct DeviceGraph::Recorded {
  at::MempoolId_t pool;
  at::cuda::CUDAGraph graph;
};

DeviceGraph::DeviceGraph(const std::function<void()>& work, const DeviceGraph* other)
    : recorded_(std::make_unique<Recorded>()) {
  const at::MempoolId_t pool = other ? other->recorded_->pool : at::cuda::graph_pool_handle();
  recorded_->pool = pool;
  at::cuda::CUDAGraph& graph = recorded_->graph;
  c10::cuda::device_synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();                // memory of the graph is its own
  graph.capture_begin(pool, cudaStreamCaptureModeThreadLocal);  // readers may go on
  std::string reason;
  try {
    work();
  } catch (const std::exception& error) {
    reason = error.what();
  }
  try {
    graph.capture_end();
  } catch (const std::exception& error) {
    if (reason.empty()) reason = error.what();
    cudaGetLastError();
    c10::cuda::CUDACachingAllocator::endAllocateToPool(c10::cuda::current_device(), pool);
  }
  if (!reason.empty()) throw Error(concat("cannot be recorded: ", first_line(reason)));
}

void DeviceGraph::launch() {
  recorded_->graph.replay();
}

double DeviceGraph::peak_memory_share() {
  const c10::DeviceIndex device = c10::cuda::current_device();
  size_t available = 0, total = 1;
  C10_CUDA_CHECK(cudaMemGetInfo(&available, &total));
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device);
  return static_cast<double>(stats.allocated_bytes[0].peak) / static_cast<double>(total);
}

#else

struct DeviceGraph::Recorded {};
DeviceGraph::DeviceGraph(const std::function<void()>& /*work*/, const DeviceGraph* /*other*/) {
  throw Error("this program was built without CUDA");
}
void DeviceGraph::launch() {}
double DeviceGraph::peak_memory_share() {
  return 0.0;
}

#endif

DeviceGraph::~DeviceGraph() = default;

}  // namespace aifs::train
