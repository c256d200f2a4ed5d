// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm_threads.h"

#include <ATen/ATen.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/check.h"

namespace aifs::parallel {

namespace {

// What the threads of a group share: a place for one tensor (or counts) each, and a barrier.
struct SharedGroup {
  explicit SharedGroup(int size_)
      : size(size_),
        tensors(static_cast<size_t>(size_)),
        counts(static_cast<size_t>(size_)),
        colours(static_cast<size_t>(size_)) {}

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;
  int64_t round = 0;
  bool aborted = false;
  std::vector<at::Tensor> tensors;
  std::vector<Counts> counts;
  std::vector<int> colours;
  std::map<int, std::shared_ptr<SharedGroup>> parts;               // of the latest split
  std::map<std::pair<int, int>, std::vector<at::Tensor>> mailbox;  // (from, to)

  void fail_if_aborted() const {
    if (aborted) throw Error("another rank failed");
  }

  void meet() {
    std::unique_lock lock(mutex);
    fail_if_aborted();
    if (++arrived == size) {
      arrived = 0;
      ++round;
      changed.notify_all();
      return;
    }
    changed.wait(lock, [&, entered = round] { return round != entered || aborted; });
    fail_if_aborted();
  }

  void abort() {
    const std::lock_guard lock(mutex);
    aborted = true;
    changed.notify_all();
    for (const auto& [colour, part] : parts)
      part->abort();
  }
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<SharedGroup> group, int rank)
      : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size; }
  const char* backend() const override { return "threads"; }
  void abort(int) override { group_->abort(); }

  void all_reduce(const at::Tensor& tensor, Reduction reduction) override {
    exchange(
        tensor,
        [&](const std::vector<at::Tensor>& all) {
          at::Tensor result = all[0].clone();
          for (size_t p = 1; p < all.size(); ++p)
            combine(result, all[p], reduction);
          return result;
        },
        tensor);
  }

  void broadcast(const at::Tensor& tensor, int root) override {
    exchange(
        tensor,
        [&](const std::vector<at::Tensor>& all) { return all[static_cast<size_t>(root)].clone(); },
        tensor);
  }

  at::Tensor all_gather_rows(const at::Tensor& own, const Counts& counts) override {
    check_size(counts);
    AIFS_CHECK(own.size(0) == counts[static_cast<size_t>(rank_)], "rank ", rank_, " gathers ",
               own.size(0), " rows, counts say ", counts[static_cast<size_t>(rank_)]);
    return exchange(own, [](const std::vector<at::Tensor>& all) { return at::cat(all, 0); });
  }

  at::Tensor reduce_scatter_rows(const at::Tensor& all_rows, const Counts& counts) override {
    check_counts(*this, counts, all_rows, "reduce-scatter");
    const Counts starts = starts_of(counts);
    const auto me = static_cast<size_t>(rank_);
    return exchange(all_rows, [&](const std::vector<at::Tensor>& all) {
      at::Tensor sum = all[0].narrow(0, starts[me], counts[me]).clone();
      for (size_t p = 1; p < all.size(); ++p)
        sum.add_(all[p].narrow(0, starts[me], counts[me]));
      return sum;
    });
  }

  at::Tensor all_to_all_rows(const at::Tensor& rows, const Counts& send_counts,
                             const Counts& recv_counts) override {
    check_counts(*this, send_counts, rows, "all-to-all");
    check_size(recv_counts);
    group_->counts[static_cast<size_t>(rank_)] = send_counts;
    const auto me = static_cast<size_t>(rank_);
    return exchange(rows, [&](const std::vector<at::Tensor>& all) {
      std::vector<at::Tensor> pieces;
      for (size_t p = 0; p < all.size(); ++p) {
        const Counts& sent = group_->counts[p];
        AIFS_CHECK(sent[me] == recv_counts[p], "rank ", p, " sends ", sent[me], " rows, rank ", me,
                   " expects ", recv_counts[p]);
        pieces.push_back(all[p].narrow(0, starts_of(sent)[me], sent[me]));
      }
      return at::cat(pieces, 0);
    });
  }

  void send(const at::Tensor& tensor, int to) override {
    const std::lock_guard lock(group_->mutex);
    group_->fail_if_aborted();
    group_->mailbox[{rank_, to}].push_back(tensor.detach().clone());
    group_->changed.notify_all();
  }

  void receive(const at::Tensor& tensor, int from) override {
    std::unique_lock lock(group_->mutex);
    std::vector<at::Tensor>& waiting = group_->mailbox[{from, rank_}];
    group_->changed.wait(lock, [&] { return !waiting.empty() || group_->aborted; });
    group_->fail_if_aborted();
    tensor.detach().copy_(waiting.front());
    waiting.erase(waiting.begin());
  }

  void barrier() override { group_->meet(); }

  std::unique_ptr<Communicator> split(int colour) override {
    group_->colours[static_cast<size_t>(rank_)] = colour;
    group_->meet();
    int part_rank = 0, part_size = 0;
    for (int p = 0; p < group_->size; ++p) {
      if (group_->colours[static_cast<size_t>(p)] != colour) continue;
      if (p < rank_) ++part_rank;
      ++part_size;
    }
    std::shared_ptr<SharedGroup> part;
    {
      const std::lock_guard lock(group_->mutex);
      auto& entry = group_->parts[colour];
      if (part_rank == 0) entry = std::make_shared<SharedGroup>(part_size);
    }
    group_->meet();
    {
      const std::lock_guard lock(group_->mutex);
      part = group_->parts[colour];
    }
    group_->meet();
    return std::make_unique<ThreadCommunicator>(part, part_rank);
  }

 private:
  static void combine(at::Tensor& into, const at::Tensor& other, Reduction reduction) {
    if (reduction == Reduction::kSum) into.add_(other);
    if (reduction == Reduction::kMax) into.copy_(at::maximum(into, other));
  }

  void check_size(const Counts& counts) const {
    AIFS_CHECK(static_cast<int>(counts.size()) == size(), counts.size(), " counts for ", size(),
               " ranks");
  }

  // Shows a tensor to all, computes from all of them, and waits until everybody has; `target`, if
  // given, then gets the result.
  template <class Compute>
  at::Tensor exchange(const at::Tensor& own, Compute&& compute, const at::Tensor& target = {}) {
    group_->tensors[static_cast<size_t>(rank_)] = own.detach();
    group_->meet();
    at::Tensor result = compute(group_->tensors);
    group_->meet();
    if (target.defined()) target.detach().copy_(result);
    return result;
  }

  std::shared_ptr<SharedGroup> group_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int num_ranks) {
  auto group = std::make_shared<SharedGroup>(num_ranks);
  std::vector<std::unique_ptr<Communicator>> members;
  for (int r = 0; r < num_ranks; ++r) {
    members.push_back(std::make_unique<ThreadCommunicator>(group, r));
  }
  return members;
}

void run_as_threads(int num_ranks, const std::function<void(Communicator&)>& body) {
  const std::vector<std::unique_ptr<Communicator>> members = make_thread_communicators(num_ranks);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::jthread> threads;
  for (const auto& member : members) {
    threads.emplace_back([&, communicator = member.get()] {
      try {
        body(*communicator);
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        communicator->abort(1);
      }
    });
  }
  threads.clear();  // joins
  if (first) std::rethrow_exception(first);
}

}  // namespace aifs::parallel
