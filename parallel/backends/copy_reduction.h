// SPDX-License-Identifier: Apache-2.0
// Sums over the cards of a host whose parts travel by the copy engines: no multiprocessor waits for
// the other side, so kernels of other streams lose none for long. NCCL's own all-reduce is a kernel
// that stays resident, and one that counts on every multiprocessor takes twice as long beside it.
// Present only in CUDA builds (AIFS_HAVE_CUDA).
#pragma once

#include <memory>

#include "parallel/communicator.h"

namespace aifs::parallel {

class CopyReduction {
 public:
  // Collective; `host` carries CPU tensors. Memory for `elements` of a type, and for what comes of
  // `largest` of them, 16 million at most, at a time. Null on all ranks unless they are cards of
  // one host that reach each other's memory.
  static std::unique_ptr<CopyReduction> make(Communicator& host, int64_t elements, int64_t largest,
                                             const at::TensorOptions& options);
  ~CopyReduction();
  CopyReduction(const CopyReduction&) = delete;
  CopyReduction& operator=(const CopyReduction&) = delete;

  // Zeros.
  const at::Tensor& memory() const { return memory_; }
  // True if this is a piece of memory().
  bool can_sum(const at::Tensor& piece) const;
  // The sum times `factor`, in place, on the current stream; the same bits on every rank. As much
  // of the piece at a time as there is room for. Collective.
  void all_reduce(const at::Tensor& piece, double factor);

 private:
  struct Window;
  void sum_parts(const at::Tensor& piece, double factor);
  void sum_rest(const at::Tensor& rest, double factor);
  CopyReduction(std::shared_ptr<Window> window, int rank, int size, at::Tensor memory,
                at::Tensor inbox);

  std::shared_ptr<Window> window_;
  int rank_, size_;
  at::Tensor memory_, inbox_;
};

}  // namespace aifs::parallel
