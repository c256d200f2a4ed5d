// SPDX-License-Identifier: Apache-2.0
// NCCL's own calls on given buffers, nothing around them: what benchmarks measure the communicator
// against. Present only in CUDA builds (AIFS_HAVE_CUDA).
#pragma once

#include <memory>

#include "parallel/communicator.h"

namespace aifs::parallel {

// Contiguous fp32 tensors of the current device, on the current stream; buffers of gather, scatter
// and all-to-all hold an equal part for every rank. All ranks of the group call alike.
class NcclDirect {
 public:
  // Collective; `host` carries CPU tensors.
  explicit NcclDirect(Communicator& host);
  ~NcclDirect();
  NcclDirect(const NcclDirect&) = delete;
  NcclDirect& operator=(const NcclDirect&) = delete;

  void all_reduce(const at::Tensor& tensor);
  void broadcast(const at::Tensor& tensor, int root);
  void all_gather(const at::Tensor& own, const at::Tensor& all);
  void reduce_scatter(const at::Tensor& all, const at::Tensor& own);
  void all_to_all(const at::Tensor& sent, const at::Tensor& received);
  void send(const at::Tensor& tensor, int to);
  void receive(const at::Tensor& tensor, int from);

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace aifs::parallel
