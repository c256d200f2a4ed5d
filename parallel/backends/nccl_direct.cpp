// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/nccl_direct.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>

#include "parallel/backends/nccl_handle.h"

namespace aifs::parallel {

namespace {

void check(ncclResult_t status) {
  check_nccl(status, "called directly");
}

cudaStream_t stream() {
  return at::cuda::getCurrentCUDAStream().stream();
}

size_t elements(const at::Tensor& tensor) {
  return static_cast<size_t>(tensor.numel());
}

}  // namespace

struct NcclDirect::Handle {
  NcclHandle nccl;
  int size = 1;
};

NcclDirect::NcclDirect(Communicator& host)
    : handle_(new Handle{.nccl = start_nccl(host), .size = host.size()}) {}

NcclDirect::~NcclDirect() = default;

void NcclDirect::all_reduce(const at::Tensor& tensor) {
  check(ncclAllReduce(tensor.const_data_ptr(), tensor.data_ptr(), elements(tensor), ncclFloat32,
                      ncclSum, handle_->nccl.get(), stream()));
}

void NcclDirect::broadcast(const at::Tensor& tensor, int root) {
  check(ncclBroadcast(tensor.const_data_ptr(), tensor.data_ptr(), elements(tensor), ncclFloat32,
                      root, handle_->nccl.get(), stream()));
}

void NcclDirect::all_gather(const at::Tensor& own, const at::Tensor& all) {
  check(ncclAllGather(own.const_data_ptr(), all.data_ptr(), elements(own), ncclFloat32,
                      handle_->nccl.get(), stream()));
}

void NcclDirect::reduce_scatter(const at::Tensor& all, const at::Tensor& own) {
  check(ncclReduceScatter(all.const_data_ptr(), own.data_ptr(), elements(own), ncclFloat32, ncclSum,
                          handle_->nccl.get(), stream()));
}

void NcclDirect::all_to_all(const at::Tensor& sent, const at::Tensor& received) {
  const size_t part = elements(sent) / static_cast<size_t>(handle_->size);
  check(ncclGroupStart());
  for (int p = 0; p < handle_->size; ++p) {
    const size_t place = part * static_cast<size_t>(p);
    check(ncclSend(sent.const_data_ptr<float>() + place, part, ncclFloat32, p, handle_->nccl.get(),
                   stream()));
    check(ncclRecv(received.data_ptr<float>() + place, part, ncclFloat32, p, handle_->nccl.get(),
                   stream()));
  }
  check(ncclGroupEnd());
}

void NcclDirect::send(const at::Tensor& tensor, int to) {
  check(ncclSend(tensor.const_data_ptr(), elements(tensor), ncclFloat32, to, handle_->nccl.get(),
                 stream()));
}

void NcclDirect::receive(const at::Tensor& tensor, int from) {
  check(ncclRecv(tensor.data_ptr(), elements(tensor), ncclFloat32, from, handle_->nccl.get(),
                 stream()));
}

}  // namespace aifs::parallel
