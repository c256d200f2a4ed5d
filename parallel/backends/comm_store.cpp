// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/comm_store.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <type_traits>

#include "core/check.h"
#include "parallel/backends/exchange_communicator.h"

namespace aifs::parallel {

namespace {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kMostBytes = int64_t{1} << 22;     // a value of the store holds 8 MiB
constexpr auto kPatience = std::chrono::seconds(1);  // between looks at whether others have failed
constexpr auto kConnecting = std::chrono::seconds(60);  // a busy host may take some
constexpr const char* kFailed = "failed";

// Messages between ranks of the world: a queue for every pair in every group.
class StoreCommunicator : public ExchangeCommunicator {
 public:
  // `ranks`: of the group's members in the world.
  StoreCommunicator(c10::intrusive_ptr<c10d::Store> store, std::shared_ptr<OperationWatch> watch,
                    std::string name, std::vector<int> ranks, int rank)
      : store_(std::move(store)),
        watch_(std::move(watch)),
        name_(std::move(name)),
        ranks_(std::move(ranks)),
        rank_(rank) {
    store_->setTimeout(kPatience);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  const char* backend() const override { return "store"; }

  void broadcast(const at::Tensor& tensor, int root) override {
    const OperationWatch::Scope watched(*watch_, "broadcast");
    if (rank_ != root) return pop(tensor, root);
    for (int p = 0; p < size(); ++p) {
      if (p != root) push(tensor, p);
    }
  }

  void all_to_all_rows_into(const at::Tensor& received, const at::Tensor& given,
                            const Counts& send_counts, const Counts& recv_counts) override {
    const OperationWatch::Scope watched(*watch_, "all-to-all");
    check_counts(*this, send_counts, given, "all-to-all");
    check_counts(*this, recv_counts, received, "all-to-all");
    const at::Tensor rows = given.detach();
    const Counts send_starts = starts_of(send_counts), recv_starts = starts_of(recv_counts);
    const auto part = [](const at::Tensor& all, const Counts& starts, const Counts& counts, int p) {
      const auto q = static_cast<size_t>(p);
      return all.narrow(0, starts[q], counts[q]);
    };
    // A message even where there are no rows: nobody leaves before all have come.
    for (int p = 0; p < size(); ++p) {
      if (p != rank_) push(part(rows, send_starts, send_counts, p), p);
    }
    const at::Tensor own = part(rows, send_starts, send_counts, rank_).clone();
    for (int p = 0; p < size(); ++p) {
      if (p != rank_) pop(part(received, recv_starts, recv_counts, p), p);
    }
    part(received.detach(), recv_starts, recv_counts, rank_).copy_(own);
  }

  void send(const at::Tensor& tensor, int to) override {
    const OperationWatch::Scope watched(*watch_, "send");
    push(tensor, to);
  }
  void receive(const at::Tensor& tensor, int from) override {
    const OperationWatch::Scope watched(*watch_, "receive");
    pop(tensor, from);
  }

  std::unique_ptr<Communicator> split(int colour) override {
    const Counts ones(static_cast<size_t>(size()), 1);
    const at::Tensor colours = all_gather_rows(at::full({1}, colour, at::kLong), ones);
    std::vector<int> members;
    int part_rank = 0;
    for (int p = 0; p < size(); ++p) {
      if (colours[p].item<int64_t>() != colour) continue;
      if (p == rank_) part_rank = static_cast<int>(members.size());
      members.push_back(ranks_[static_cast<size_t>(p)]);
    }
    store_->setTimeout(kConnecting);
    c10::intrusive_ptr<c10d::Store> connection = call([&] { return store_->clone(); });
    store_->setTimeout(kPatience);
    return std::make_unique<StoreCommunicator>(std::move(connection), watch_,
                                               concat(name_, '.', num_splits_++, '.', colour),
                                               std::move(members), part_rank);
  }

  std::shared_ptr<void> at_work(const char* work) override {
    return std::make_shared<OperationWatch::Work>(*watch_, work);
  }
  void moves_on(const char* work) override { watch_->note_progress(work); }

  // The others see it when they wait for a message.
  void abort(int exit_code) override {
    try {
      store_->set(kFailed, Bytes{1});
    } catch (const std::exception&) {  // the store has ended: so have the others
    }
    std::_Exit(exit_code);
  }

 private:
  std::string queue(int from, int to) const {
    return concat(name_, '/', ranks_[static_cast<size_t>(from)], '/',
                  ranks_[static_cast<size_t>(to)]);
  }

  template <class F>
  std::invoke_result_t<F> call(const F& use_store) {
    try {
      return use_store();
    } catch (const c10::Error& error) {
      throw Error(concat("the store of rank 0 does not answer: ", error.what_without_backtrace()),
                  "rank 0 or its host has failed; its log says more");
    }
  }

  void push(const at::Tensor& given, int to) {
    const at::Tensor tensor = given.detach().contiguous();
    const auto* data = static_cast<const uint8_t*>(tensor.const_data_ptr());
    const auto total = static_cast<int64_t>(tensor.nbytes());
    int64_t done = 0;
    do {
      const int64_t count = std::min(kMostBytes, total - done);
      call([&] { store_->queuePush(queue(rank_, to), Bytes(data + done, data + done + count)); });
      done += count;
    } while (done < total);
  }

  void pop(const at::Tensor& tensor, int from) {
    AIFS_CHECK(tensor.is_cpu() && tensor.is_contiguous(), "a message to rank ", rank_,
               " needs a contiguous CPU tensor");
    auto* data = static_cast<uint8_t*>(tensor.data_ptr());
    const auto total = static_cast<int64_t>(tensor.nbytes());
    int64_t done = 0;
    do {
      const Bytes piece = next(queue(from, rank_));
      const auto count = static_cast<int64_t>(piece.size());
      AIFS_CHECK(done + count <= total, "a message from rank ", from, " has ", done + count,
                 " bytes or more, wanted were ", total);
      if (count > 0) std::memcpy(data + done, piece.data(), piece.size());
      done += count;
    } while (done < total);
  }

  Bytes next(const std::string& queue) {
    while (true) {
      try {
        return store_->queuePop(queue, /*block=*/true);
      } catch (const c10::DistStoreError&) {  // nothing yet
        if (call([&] { return store_->check({kFailed}); }))
          throw Error("another rank has failed", "its log says why");
      } catch (const c10::Error&) {
        return call([&]() -> Bytes { throw; });
      }
    }
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<OperationWatch> watch_;
  std::string name_;
  std::vector<int> ranks_;
  int rank_;
  int64_t num_splits_ = 0;
};

// The first rank serves the store and so leaves last.
class StoreWorld : public StoreCommunicator {
 public:
  using StoreCommunicator::StoreCommunicator;
  ~StoreWorld() override {
    try {
      const at::Tensor nothing = at::zeros({1});
      if (rank() != 0) send(nothing, 0);
      for (int p = 1; rank() == 0 && p < size(); ++p)
        receive(nothing, p);
    } catch (const std::exception&) {  // others have failed: nobody is left to wait for
    }
  }
};

}  // namespace

std::unique_ptr<Communicator> make_store_world(const StoreAddress& address, int rank, int size,
                                               double timeout_s,
                                               std::shared_ptr<OperationWatch> watch) {
  constexpr double kOtherwise_s = 300.0;
  FLAGS_caffe2_log_level = 2;  // errors: the store warns of every second of a wait
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.isServer = rank == 0;
  options.numWorkers = static_cast<size_t>(size);
  options.timeout = std::chrono::milliseconds(
      static_cast<int64_t>(1e3 * (timeout_s > 0 ? timeout_s : kOtherwise_s)));
  std::vector<int> ranks;
  for (int p = 0; p < size; ++p)
    ranks.push_back(p);
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(address.host, options);
    if (store->add(concat("joined/", rank), 1) > 1) {
      throw ConfigError("RANK",
                        concat("two processes say that they are rank ", rank, " at ", address.host,
                               ":", address.port),
                        "RANK must differ between processes, MASTER_PORT between jobs of a host");
    }
    return std::make_unique<StoreWorld>(std::move(store), std::move(watch), "world",
                                        std::move(ranks), rank);
  } catch (const c10::Error& error) {
    throw Error(concat("rank ", rank, " of ", size, " does not reach the others through ",
                       address.host, ":", address.port, ": ", error.what_without_backtrace()),
                "MASTER_ADDR and MASTER_PORT name another address of rank 0 and a free port");
  }
}

}  // namespace aifs::parallel
