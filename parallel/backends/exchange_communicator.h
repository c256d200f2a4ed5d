// SPDX-License-Identifier: Apache-2.0
// A communicator built on one exchange, rows from every rank to every rank: reductions are
// exchanges followed by sums in rank order, so all ranks get the same bits on any layout.
#pragma once

#include "parallel/communicator.h"

namespace aifs::parallel {

class ExchangeCommunicator : public Communicator {
 public:
  void all_reduce(const at::Tensor& tensor, Reduction reduction) override;
  void broadcast(const at::Tensor& tensor, int root) override;
  void all_gather_rows_into(const at::Tensor& all, const at::Tensor& own,
                            const Counts& counts) override;
  void reduce_scatter_rows_into(const at::Tensor& own, const at::Tensor& all,
                                const Counts& counts) override;
  void barrier() override;

 private:
  Counts for_each_rank(int64_t rows) const { return Counts(static_cast<size_t>(size()), rows); }
  // This rank's share of the rows, combined over ranks.
  at::Tensor reduced_share(const at::Tensor& all, const Counts& counts, Reduction reduction);
};

}  // namespace aifs::parallel
