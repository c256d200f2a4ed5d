// SPDX-License-Identifier: Apache-2.0
#include "parallel/overlapped_exchange.h"

#include <ATen/ATen.h>

#include <numeric>

namespace aifs::parallel {

OverlappedExchange::OverlappedExchange(std::shared_ptr<const RowExchange> exchange)
    : exchange_(std::move(exchange)), side_(*exchange_->group, exchange_->send_rows.device()) {}

at::Tensor OverlappedExchange::send(const at::Tensor& own) {
  return start(own.detach().index_select(0, exchange_->send_rows), exchange_->send_counts,
               exchange_->recv_counts);
}

at::Tensor OverlappedExchange::send_back(const at::Tensor& received) {
  return start(received.detach().contiguous(), exchange_->recv_counts, exchange_->send_counts);
}

// Memory of both sides is the current stream's, which takes it back only after wait().
at::Tensor OverlappedExchange::start(const at::Tensor& outgoing, const Counts& from,
                                     const Counts& to) {
  if (outgoing_.defined()) wait();  // whoever started it has failed since
  outgoing_ = outgoing;
  incoming_ = at::empty({std::accumulate(to.begin(), to.end(), int64_t{0}), outgoing.size(1)},
                        outgoing.options());
  side_.run([&] { exchange_->group->all_to_all_rows_into(incoming_, outgoing_, from, to); });
  return incoming_;
}

void OverlappedExchange::wait() {
  side_.join();
  outgoing_ = incoming_ = at::Tensor();
}

}  // namespace aifs::parallel
