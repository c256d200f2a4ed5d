// SPDX-License-Identifier: Apache-2.0
#include "parallel/side_stream.h"

#include <ATen/ATen.h>

#include <string_view>

#ifdef AIFS_HAVE_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace aifs::parallel {

#ifdef AIFS_HAVE_CUDA

struct SideStream::Queue {
  c10::cuda::CUDAStream stream;
  at::cuda::CUDAEvent begin, end;

  explicit Queue(at::Device device)
      : stream(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {}
};

SideStream::SideStream(const Communicator& group, at::Device device) {
  if (device.is_cuda() && std::string_view(group.backend()) == "NCCL")
    queue_ = std::make_unique<Queue>(device);
}

void SideStream::run(const std::function<void()>& work) {
  if (!queue_) return work();
  queue_->begin.record(c10::cuda::getCurrentCUDAStream(queue_->stream.device_index()));
  queue_->begin.block(queue_->stream);
  const c10::cuda::CUDAStreamGuard guard(queue_->stream);
  work();
}

void SideStream::keep(const at::Tensor& tensor) const {
  if (queue_) tensor.record_stream(queue_->stream);
}

void SideStream::join() {
  if (!queue_) return;
  queue_->end.record(queue_->stream);
  queue_->end.block(c10::cuda::getCurrentCUDAStream(queue_->stream.device_index()));
}

void keep_for_current_stream(const at::Tensor& tensor) {
  if (tensor.is_cuda())
    tensor.record_stream(c10::cuda::getCurrentCUDAStream(tensor.device().index()));
}

#else

struct SideStream::Queue {};
SideStream::SideStream(const Communicator& /*group*/, at::Device /*device*/) {}
void SideStream::run(const std::function<void()>& work) {
  work();
}
void SideStream::keep(const at::Tensor& /*tensor*/) const {}
void SideStream::join() {}
void keep_for_current_stream(const at::Tensor& /*tensor*/) {}

#endif

SideStream::~SideStream() = default;

}  // namespace aifs::parallel
