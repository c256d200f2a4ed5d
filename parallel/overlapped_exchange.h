// SPDX-License-Identifier: Apache-2.0
// An exchange of rows beside computation, and the way back of their gradients: the halves of
// with_received_rows() (parallel/autograd.h) for operations that have a backward pass of their own.
#pragma once

#include "parallel/autograd.h"
#include "parallel/side_stream.h"

namespace aifs::parallel {

// One exchange is under way at a time. All calls but add_returned() are collective over its group,
// or have to be made by all ranks in the same order. On the CPU rows are there at once.
class OverlappedExchange {
 public:
  explicit OverlappedExchange(std::shared_ptr<const RowExchange> exchange);

  // Starts sending own rows (N, C) -> those of other ranks (num_received, C), there after wait().
  at::Tensor send(const at::Tensor& own);
  // Starts sending gradients of received rows back -> those of the rows sent, there after wait().
  at::Tensor send_back(const at::Tensor& received);
  // Lets what the current stream is given from here on begin after the exchange.
  void wait();
  // own += what came back, row by row.
  void add_returned(const at::Tensor& own, const at::Tensor& returned) const {
    exchange_->add_returned(own, returned);
  }

 private:
  at::Tensor start(const at::Tensor& outgoing, const Counts& from, const Counts& to);

  std::shared_ptr<const RowExchange> exchange_;
  SideStream side_;
  at::Tensor outgoing_, incoming_;  // under way
};

}  // namespace aifs::parallel
