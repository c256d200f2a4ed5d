// SPDX-License-Identifier: Apache-2.0
// A communicator that passes everything on and counts: what a run really sends, by operation. With
// a ring it also keeps the last operations.
#pragma once

#include <array>
#include <functional>
#include <mutex>

#include "core/enum_names.h"
#include "parallel/communicator.h"
#include "parallel/operation_ring.h"

namespace aifs::parallel {

enum class Operation {
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSend,
  kReceive,
  kBarrier
};

// Calls of one rank, and the bytes it handed over: of a tensor that is reduced, broadcast, sent or
// received, all of them; of rows, those that go to other ranks (all-to-all, reduce-scatter) or come
// from them (all-gather).
struct OperationCount {
  int64_t calls = 0, bytes = 0;
};
using OperationCounts = std::array<OperationCount, 8>;  // by Operation

// Shared by a communicator and all that are split from it. Thread-safe.
class CommunicationCount {
 public:
  void add(Operation operation, int64_t bytes);
  OperationCount of(Operation operation) const;
  // Takes back what `work` adds, and returns it: work that is only recorded, and counts when it is
  // launched.
  OperationCounts of_recorded(const std::function<void()>& work);
  void add(const OperationCounts& counts);
  // One line per operation that was called.
  std::string table() const;

 private:
  mutable std::mutex mutex_;
  OperationCounts counts_{};
};

class CountingCommunicator : public Communicator {
 public:
  // `inner` outlives this. `ring` may be null.
  CountingCommunicator(Communicator& inner, std::shared_ptr<CommunicationCount> count,
                       std::shared_ptr<OperationRing> ring = nullptr)
      : inner_(inner), count_(std::move(count)), ring_(std::move(ring)) {
    if (ring_) group_ = ring_->add_group(-1, 0, inner.size(), inner.rank());
  }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const char* backend() const override { return inner_.backend(); }

  void all_reduce(const at::Tensor& tensor, Reduction reduction) override;
  at::Tensor background_memory(int64_t elements, int64_t largest,
                               const at::TensorOptions& options) override {
    return inner_.background_memory(elements, largest, options);
  }
  void all_reduce_in_background(const at::Tensor& tensor, double factor) override;
  void broadcast(const at::Tensor& tensor, int root) override;
  void all_gather_rows_into(const at::Tensor& all, const at::Tensor& own,
                            const Counts& counts) override;
  void reduce_scatter_rows_into(const at::Tensor& own, const at::Tensor& all,
                                const Counts& counts) override;
  void all_to_all_rows_into(const at::Tensor& received, const at::Tensor& rows,
                            const Counts& send_counts, const Counts& recv_counts) override;
  void send(const at::Tensor& tensor, int to) override;
  void receive(const at::Tensor& tensor, int from) override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int colour) override;
  CommunicationCount* count() const override { return count_.get(); }
  std::shared_ptr<void> at_work(const char* work) override { return inner_.at_work(work); }
  void moves_on(const char* work) override { inner_.moves_on(work); }
  void abort(int exit_code) override { inner_.abort(exit_code); }

 private:
  CountingCommunicator(std::unique_ptr<Communicator> inner, const CountingCommunicator& parent,
                       int colour)
      : owned_(std::move(inner)), inner_(*owned_), count_(parent.count_), ring_(parent.ring_) {
    if (ring_) group_ = ring_->add_group(parent.group_, colour, inner_.size(), inner_.rank());
  }
  // Counts an operation that lasts as long as the result lives.
  OperationRing::Scope noted(Operation operation, int64_t bytes, int peer = -1);

  std::unique_ptr<Communicator> owned_;  // of a group that was split off
  Communicator& inner_;
  std::shared_ptr<CommunicationCount> count_;
  std::shared_ptr<OperationRing> ring_;
  int64_t group_ = 0;  // of the ring
};

constexpr auto enum_table(Operation) {
  using enum Operation;
  return std::to_array<EnumName<Operation>>({{kAllReduce, "all-reduce"},
                                             {kBroadcast, "broadcast"},
                                             {kAllGather, "all-gather"},
                                             {kReduceScatter, "reduce-scatter"},
                                             {kAllToAll, "all-to-all"},
                                             {kSend, "send"},
                                             {kReceive, "receive"},
                                             {kBarrier, "barrier"}});
}

}  // namespace aifs::parallel
