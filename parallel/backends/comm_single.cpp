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
  void all_gather_rows_into(const at::Tensor& all, const at::Tensor& own,
                            const Counts& counts) override {
    copy(all, own, counts, "all-gather");
  }
  void reduce_scatter_rows_into(const at::Tensor& own, const at::Tensor& all,
                                const Counts& counts) override {
    copy(own, all, counts, "reduce-scatter");
  }
  void all_to_all_rows_into(const at::Tensor& received, const at::Tensor& rows,
                            const Counts& send_counts, const Counts& recv_counts) override {
    check_counts(*this, recv_counts, received, "all-to-all");
    copy(received, rows, send_counts, "all-to-all");
  }
  void send(const at::Tensor&, int) override { throw Error("a single rank has no one to send to"); }
  void receive(const at::Tensor&, int) override {
    throw Error("a single rank has no one to receive from");
  }
  void barrier() override {}
  std::unique_ptr<Communicator> split(int) override { return make_single_communicator(); }
  void abort(int) override {}

 private:
  void copy(const at::Tensor& to, const at::Tensor& from, const Counts& counts,
            const char* operation) const {
    check_counts(*this, counts, from, operation);
    to.detach().copy_(from.detach());
  }
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace aifs::parallel
