// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "core/check.h"
#include "parallel/communicator.h"

namespace aifs::parallel {

namespace {

class SingleCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* backend() const override { return "single"; }
  void all_reduce(const at::Tensor&, Reduction) override {}
  void broadcast(const at::Tensor&, int) override {}
  at::Tensor all_gather_rows(const at::Tensor& own, const Counts& counts) override {
    check_counts(*this, counts, own, "all-gather");
    return own.detach().clone();
  }
  at::Tensor reduce_scatter_rows(const at::Tensor& all, const Counts& counts) override {
    check_counts(*this, counts, all, "reduce-scatter");
    return all.detach().clone();
  }
  at::Tensor all_to_all_rows(const at::Tensor& rows, const Counts& send_counts,
                             const Counts& recv_counts) override {
    check_counts(*this, send_counts, rows, "all-to-all");
    check_counts(*this, recv_counts, rows, "all-to-all");
    return rows.detach().clone();
  }
  void send(const at::Tensor&, int) override { throw Error("a single rank has no one to send to"); }
  void receive(const at::Tensor&, int) override {
    throw Error("a single rank has no one to receive from");
  }
  void barrier() override {}
  std::unique_ptr<Communicator> split(int) override { return make_single_communicator(); }
  void abort(int) override {}
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace aifs::parallel
