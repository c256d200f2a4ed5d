// SPDX-License-Identifier: Apache-2.0
// Exchanges of rows as differentiable functions. Each backward is the adjoint of its forward over
// the whole group: sum over ranks of <y_bar, f(x)> = sum over ranks of <f*(y_bar), x>. All ranks
// run the same backward functions in the same order, as they do when their graphs are alike.
// The communicator must outlive the backward pass.
#pragma once

#include <memory>

#include "core/exchange_plan.h"
#include "parallel/communicator.h"

namespace aifs::parallel {

// Adjoint: reduce-scatter.
at::Tensor all_gather_rows(const at::Tensor& own, const Counts& counts, Communicator& group);
// Adjoint: all-gather.
at::Tensor reduce_scatter_rows(const at::Tensor& all, const Counts& counts, Communicator& group);
// Adjoint: all-to-all the other way.
at::Tensor all_to_all_rows(const at::Tensor& rows, const Counts& send_counts,
                           const Counts& recv_counts, Communicator& group);
// Sum over ranks, on every rank. Adjoint: the same.
at::Tensor all_reduce_sum(const at::Tensor& tensor, Communicator& group);
// Values of `root` on every rank. Adjoint: the sum over ranks at `root`, zero elsewhere.
at::Tensor broadcast(const at::Tensor& tensor, int root, Communicator& group);

// The sum over ranks of a partial sum, where every rank goes on with the same total and calls
// backward on it: the gradient of the total with respect to this rank's part is that of the total,
// so the backward is the identity (not the adjoint, which would count the total R times).
at::Tensor total_over_ranks(const at::Tensor& partial, Communicator& group);

// The counterpart of total_over_ranks: the same tensor on every rank, of which each rank uses what
// its own part of the work needs. Its gradient is the sum over ranks, on every rank.
at::Tensor copied_to_ranks(const at::Tensor& tensor, Communicator& group);

// The rows of all ranks, where every rank goes on with the same rows, computes the same number from
// them and calls backward on it: the backward is the own part of the gradient (not the adjoint,
// which would count it R times). Nothing is sent for it.
at::Tensor whole_rows(const at::Tensor& own, const Counts& counts, Communicator& group);

// An ExchangePlan on a device.
struct RowExchange {
  at::Tensor send_rows;  // i64 own rows to send, grouped by receiver
  Counts send_counts, recv_counts;
  Communicator* group = nullptr;

  static std::shared_ptr<const RowExchange> create(const ExchangePlan& plan, Communicator& group,
                                                   at::Device device);
  std::shared_ptr<const RowExchange> to(at::Device device) const;
  // own += rows that came back, grouped as those sent, at the rows that were sent.
  void add_returned(const at::Tensor& own, const at::Tensor& returned) const;
};

// [own | received]: own rows (N, ...) followed by the rows that other ranks sent, grouped by
// sender. Adjoint: gradients of received rows go back and are added to the rows they came from.
at::Tensor with_received_rows(const at::Tensor& own,
                              const std::shared_ptr<const RowExchange>& exchange);

}  // namespace aifs::parallel
