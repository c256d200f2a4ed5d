// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/comm_nccl.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/cuda/CUDAContext.h>

#include <algorithm>

#include "core/check.h"
#include "parallel/backends/copy_reduction.h"
#include "parallel/backends/nccl_handle.h"

namespace aifs::parallel {

namespace {

// Elements per row; rows may be none.
size_t row_elements(const at::Tensor& rows) {
  size_t elements = 1;
  for (int64_t d = 1; d < rows.dim(); ++d)
    elements *= static_cast<size_t>(rows.size(d));
  return elements;
}

bool all_equal(const Counts& counts) {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

// Operations between begin and end are carried out together.
class Together {
 public:
  // The communicator exists before the group begins: NCCL could not start inside it.
  explicit Together(ncclComm_t) { check_nccl(ncclGroupStart(), "group"); }
  void end() {
    ended_ = true;
    check_nccl(ncclGroupEnd(), "group");
  }
  ~Together() {
    if (!ended_) ncclGroupEnd();
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

 private:
  bool ended_ = false;
};

class NcclCommunicator : public Communicator {
 public:
  explicit NcclCommunicator(std::unique_ptr<Communicator> host) : host_(std::move(host)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  const char* backend() const override { return "NCCL"; }

  void all_reduce(const at::Tensor& tensor, Reduction reduction) override {
    if (!tensor.is_cuda()) return host_->all_reduce(tensor, reduction);
    require(tensor, "all-reduce");
    const ncclRedOp_t operation = reduction == Reduction::kSum ? ncclSum : ncclMax;
    check_nccl(ncclAllReduce(tensor.const_data_ptr(), tensor.data_ptr(), elements(tensor),
                             nccl_type(tensor), operation, nccl(), stream()),
               "all-reduce");
  }

  at::Tensor background_memory(int64_t elements, int64_t largest,
                               const at::TensorOptions& options) override {
    if (!options.device().is_cuda() || size() == 1) return {};
    copies_ = CopyReduction::make(*host_, elements, largest, options);
    return copies_ ? copies_->memory() : at::Tensor();
  }

  void all_reduce_in_background(const at::Tensor& tensor, double factor) override {
    if (copies_ && copies_->can_sum(tensor)) {
      copies_->all_reduce(tensor, factor);
    } else {
      Communicator::all_reduce_in_background(tensor, factor);
    }
  }

  void broadcast(const at::Tensor& tensor, int root) override {
    if (!tensor.is_cuda()) return host_->broadcast(tensor, root);
    require(tensor, "broadcast");
    check_nccl(ncclBroadcast(tensor.const_data_ptr(), tensor.data_ptr(), elements(tensor),
                             nccl_type(tensor), root, nccl(), stream()),
               "broadcast");
  }

  void all_gather_rows_into(const at::Tensor& all, const at::Tensor& given,
                            const Counts& counts) override {
    if (!given.is_cuda()) return host_->all_gather_rows_into(all, given, counts);
    check_own_rows(*this, counts, given, "all-gather");
    check_counts(*this, counts, all, "all-gather");
    require(all, "all-gather");
    const at::Tensor own = contiguous(given);
    if (all_equal(counts)) {
      check_nccl(ncclAllGather(own.const_data_ptr(), all.data_ptr(), elements(own), nccl_type(own),
                               nccl(), stream()),
                 "all-gather");
      return;
    }
    const Counts starts = starts_of(counts);
    Together together(nccl());
    for (int p = 0; p < size(); ++p) {
      const auto q = static_cast<size_t>(p);
      if (counts[q] == 0) continue;
      check_nccl(ncclBroadcast(own.const_data_ptr(), row(all, starts[q]),
                               static_cast<size_t>(counts[q]) * row_elements(own), nccl_type(own),
                               p, nccl(), stream()),
                 "all-gather");
    }
    together.end();
  }

  void reduce_scatter_rows_into(const at::Tensor& own, const at::Tensor& given,
                                const Counts& counts) override {
    if (!given.is_cuda()) return host_->reduce_scatter_rows_into(own, given, counts);
    check_counts(*this, counts, given, "reduce-scatter");
    check_own_rows(*this, counts, own, "reduce-scatter");
    require(own, "reduce-scatter");
    const at::Tensor all = contiguous(given);
    if (all_equal(counts)) {
      check_nccl(ncclReduceScatter(all.const_data_ptr(), own.data_ptr(), elements(own),
                                   nccl_type(all), ncclSum, nccl(), stream()),
                 "reduce-scatter");
      return;
    }
    const Counts starts = starts_of(counts);
    Together together(nccl());
    for (int p = 0; p < size(); ++p) {
      const auto q = static_cast<size_t>(p);
      if (counts[q] == 0) continue;
      check_nccl(ncclReduce(row(all, starts[q]), own.data_ptr(),
                            static_cast<size_t>(counts[q]) * row_elements(all), nccl_type(all),
                            ncclSum, p, nccl(), stream()),
                 "reduce-scatter");
    }
    together.end();
  }

  void all_to_all_rows_into(const at::Tensor& received, const at::Tensor& given,
                            const Counts& send_counts, const Counts& recv_counts) override {
    if (!given.is_cuda())
      return host_->all_to_all_rows_into(received, given, send_counts, recv_counts);
    check_counts(*this, send_counts, given, "all-to-all");
    check_counts(*this, recv_counts, received, "all-to-all");
    require(received, "all-to-all");
    const at::Tensor rows = contiguous(given);
    const Counts send_starts = starts_of(send_counts), recv_starts = starts_of(recv_counts);
    const size_t width = row_elements(rows);
    Together together(nccl());
    for (int p = 0; p < size(); ++p) {
      const auto q = static_cast<size_t>(p);
      if (send_counts[q] > 0) {
        check_nccl(ncclSend(row(rows, send_starts[q]), static_cast<size_t>(send_counts[q]) * width,
                            nccl_type(rows), p, nccl(), stream()),
                   "all-to-all");
      }
      if (recv_counts[q] > 0) {
        check_nccl(
            ncclRecv(row(received, recv_starts[q]), static_cast<size_t>(recv_counts[q]) * width,
                     nccl_type(rows), p, nccl(), stream()),
            "all-to-all");
      }
    }
    together.end();
  }

  void send(const at::Tensor& tensor, int to) override {
    if (!tensor.is_cuda()) return host_->send(tensor, to);
    const at::Tensor whole = contiguous(tensor);
    check_nccl(
        ncclSend(whole.const_data_ptr(), elements(whole), nccl_type(whole), to, nccl(), stream()),
        "send");
  }

  void receive(const at::Tensor& tensor, int from) override {
    if (!tensor.is_cuda()) return host_->receive(tensor, from);
    require(tensor, "receive");
    check_nccl(
        ncclRecv(tensor.data_ptr(), elements(tensor), nccl_type(tensor), from, nccl(), stream()),
        "receive");
  }

  void barrier() override { host_->barrier(); }

  std::unique_ptr<Communicator> split(int colour) override {
    return std::make_unique<NcclCommunicator>(host_->split(colour));
  }

  std::shared_ptr<void> at_work(const char* work) override { return host_->at_work(work); }
  void moves_on(const char* work) override { host_->moves_on(work); }
  void abort(int exit_code) override { host_->abort(exit_code); }

 private:
  static cudaStream_t stream() { return at::cuda::getCurrentCUDAStream().stream(); }
  static size_t elements(const at::Tensor& tensor) { return static_cast<size_t>(tensor.numel()); }
  static void* row(const at::Tensor& rows, int64_t index) {
    return static_cast<char*>(rows.data_ptr()) + static_cast<size_t>(index) * row_elements(rows) *
                                                     static_cast<size_t>(rows.element_size());
  }
  static at::Tensor contiguous(const at::Tensor& tensor) {
    const at::NoGradGuard no_grad;
    return tensor.contiguous();
  }

  void require(const at::Tensor& tensor, const char* operation) const {
    AIFS_CHECK(tensor.is_contiguous(), operation, " on rank ", rank(),
               " needs a contiguous tensor");
  }

  // The first call is collective.
  ncclComm_t nccl() {
    if (!nccl_) nccl_ = start_nccl(*host_);
    return nccl_.get();
  }

  std::unique_ptr<Communicator> host_;
  NcclHandle nccl_;
  std::unique_ptr<CopyReduction> copies_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> host) {
  return std::make_unique<NcclCommunicator>(std::move(host));
}

}  // namespace aifs::parallel
