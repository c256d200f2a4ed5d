// SPDX-License-Identifier: Apache-2.0
// Rows of an exchange are packed by the first thread of each process.
#include "parallel/backends/comm_virtual.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "parallel/backends/exchange_communicator.h"
#include "parallel/backends/thread_group.h"

namespace aifs::parallel {

namespace {

// A group of virtual ranks: which process plays each, and how processes and threads meet.
struct VirtualGroup {
  std::vector<int> process;  // (R) index of the process of each rank among those of the group
  std::unique_ptr<Communicator> owned_processes;  // of the processes that play any rank of it
  Communicator* processes = nullptr;
  std::unique_ptr<ThreadGroup> threads;                            // of this process's ranks
  int first_local = 0;                                             // rank of the first of them
  std::vector<at::Tensor> results;                                 // by local rank
  std::map<int64_t, std::shared_ptr<VirtualGroup>> parts;          // of the latest split, by colour
  std::map<std::pair<int, int>, std::vector<at::Tensor>> mailbox;  // (from, to), in this process

  std::mutex mutex;  // of what follows
  bool aborted = false;
  std::vector<std::shared_ptr<VirtualGroup>> all_parts;

  int size() const { return static_cast<int>(process.size()); }
  int num_local() const { return threads->size(); }
  // Ranks of one process: [first, last).
  std::pair<int, int> ranks_of(int p) const {
    const auto range = std::equal_range(process.begin(), process.end(), p);
    return {static_cast<int>(range.first - process.begin()),
            static_cast<int>(range.second - process.begin())};
  }
  void abort() {
    const std::lock_guard lock(mutex);
    aborted = true;
    threads->abort();
    for (const auto& part : all_parts)
      part->abort();
  }
  void add_part(int64_t colour, const std::shared_ptr<VirtualGroup>& part) {
    const std::lock_guard lock(mutex);
    parts[colour] = part;
    all_parts.push_back(part);
    if (aborted) part->abort();
  }
};

// Does the part of the first thread of a process in an exchange. Rows for a process are ordered by
// receiving rank, then by sending rank.
void exchange_between_processes(VirtualGroup& group) {
  ThreadGroup& local = *group.threads;
  const int num_processes = group.processes->size();
  std::vector<at::Tensor> pieces;
  Counts send_rows, recv_rows;
  for (int p = 0; p < num_processes; ++p) {
    const auto [first, last] = group.ranks_of(p);
    int64_t sent = 0, received = 0;
    for (int to = first; to < last; ++to) {
      for (int from = 0; from < local.size(); ++from) {
        const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
        const Counts& counts = local.counts[f];
        pieces.push_back(local.tensors[f].narrow(0, starts_of(counts)[t], counts[t]));
        sent += counts[t];
      }
    }
    for (int to = 0; to < local.size(); ++to) {
      for (int from = first; from < last; ++from)
        received += local.more_counts[static_cast<size_t>(to)][static_cast<size_t>(from)];
    }
    send_rows.push_back(sent);
    recv_rows.push_back(received);
  }
  const at::Tensor all = group.processes->all_to_all_rows(at::cat(pieces, 0), send_rows, recv_rows);
  std::vector<std::vector<at::Tensor>> parts(static_cast<size_t>(local.size()));
  int64_t at = 0;
  for (int p = 0; p < num_processes; ++p) {
    const auto [first, last] = group.ranks_of(p);
    for (size_t to = 0; to < parts.size(); ++to) {
      for (int from = first; from < last; ++from) {
        const int64_t rows = local.more_counts[to][static_cast<size_t>(from)];
        parts[to].push_back(all.narrow(0, at, rows));
        at += rows;
      }
    }
  }
  for (size_t to = 0; to < parts.size(); ++to)
    group.results[to] = at::cat(parts[to], 0);
}

class VirtualCommunicator : public ExchangeCommunicator {
 public:
  VirtualCommunicator(std::shared_ptr<VirtualGroup> group, int rank)
      : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  const char* backend() const override { return "virtual"; }

  void all_to_all_rows_into(const at::Tensor& received, const at::Tensor& rows,
                            const Counts& send_counts, const Counts& recv_counts) override {
    check_counts(*this, send_counts, rows, "all-to-all");
    check_counts(*this, recv_counts, received, "all-to-all");
    ThreadGroup& local = *group_->threads;
    local.tensors[me()] = rows.detach();
    local.counts[me()] = send_counts;
    local.more_counts[me()] = recv_counts;
    local.meet();
    if (me() == 0) exchange_between_processes(*group_);
    local.meet();
    received.detach().copy_(std::exchange(group_->results[me()], at::Tensor()));
    local.tensors[me()] = at::Tensor();
  }

  void send(const at::Tensor& tensor, int to) override {
    check_here(to);
    group_->threads->locked([&] {
      group_->mailbox[{rank_, to}].push_back(tensor.detach().clone());
    });
  }
  void receive(const at::Tensor& tensor, int from) override {
    check_here(from);
    group_->threads->wait_until([&] {
      std::vector<at::Tensor>& waiting = group_->mailbox[{from, rank_}];
      if (waiting.empty()) return false;
      tensor.detach().copy_(waiting.front());
      waiting.erase(waiting.begin());
      return true;
    });
  }

  std::unique_ptr<Communicator> split(int colour) override {
    const at::Tensor colours =
        all_gather_rows(at::full({1}, colour, at::kLong), Counts(static_cast<size_t>(size()), 1));
    if (me() == 0) make_parts(colours);
    group_->threads->meet();
    const std::shared_ptr<VirtualGroup> part = group_->parts.at(colour);
    int part_rank = 0;
    for (int r = 0; r < rank_; ++r)
      part_rank += colours[r].item<int64_t>() == colour ? 1 : 0;
    group_->threads->meet();
    return std::make_unique<VirtualCommunicator>(part, part_rank);
  }

  std::shared_ptr<void> at_work(const char* work) override {
    return group_->processes->at_work(work);
  }
  void moves_on(const char* work) override { group_->processes->moves_on(work); }

  void abort(int exit_code) override {
    group_->abort();
    if (group_->processes->size() > 1) group_->processes->abort(exit_code);
  }

 private:
  size_t me() const { return static_cast<size_t>(rank_ - group_->first_local); }

  void check_here(int rank) const {
    const auto r = static_cast<size_t>(rank);
    if (group_->process[r] != group_->process[static_cast<size_t>(rank_)])
      throw Error("virtual ranks of different processes have no point-to-point messages");
  }

  // One group for every colour, in the same order in every process.
  void make_parts(const at::Tensor& colours) {
    group_->parts.clear();
    const int64_t* colour_of = colours.const_data_ptr<int64_t>();
    std::vector<int64_t> distinct(colour_of, colour_of + size());
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const int this_process = group_->process[static_cast<size_t>(rank_)];
    for (const int64_t colour : distinct) {
      auto part = std::make_shared<VirtualGroup>();
      int local = 0, last_process = -1, index = -1;
      for (int r = 0; r < size(); ++r) {
        if (colour_of[r] != colour) continue;
        const int p = group_->process[static_cast<size_t>(r)];
        if (p != last_process) ++index;
        last_process = p;
        if (p == this_process && local++ == 0) part->first_local = part->size();
        part->process.push_back(index);
      }
      std::unique_ptr<Communicator> processes = group_->processes->split(local > 0 ? 1 : 0);
      if (local == 0) continue;
      part->owned_processes = std::move(processes);
      part->processes = part->owned_processes.get();
      part->threads = std::make_unique<ThreadGroup>(local);
      part->results.resize(static_cast<size_t>(local));
      group_->add_part(colour, part);
    }
  }

  std::shared_ptr<VirtualGroup> group_;
  int rank_;
};

}  // namespace

void run_as_virtual_ranks(Communicator& processes, int num_ranks,
                          const std::function<void(Communicator&)>& body) {
  AIFS_CHECK(num_ranks % processes.size() == 0, num_ranks, " ranks for ", processes.size(),
             " processes");
  const int share = num_ranks / processes.size();
  auto group = std::make_shared<VirtualGroup>();
  for (int r = 0; r < num_ranks; ++r)
    group->process.push_back(r / share);
  group->processes = &processes;
  group->threads = std::make_unique<ThreadGroup>(share);
  group->results.resize(static_cast<size_t>(share));
  group->first_local = processes.rank() * share;

  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::jthread> threads;
  for (int t = 0; t < share; ++t) {
    threads.emplace_back([&, rank = group->first_local + t] {
      VirtualCommunicator member(group, rank);
      try {
        body(member);
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        group->abort();
      }
    });
  }
  threads.clear();  // joins
  if (first) std::rethrow_exception(first);
}

void run_as_threads(int num_ranks, const std::function<void(Communicator&)>& body) {
  const std::unique_ptr<Communicator> alone = make_single_communicator();
  run_as_virtual_ranks(*alone, num_ranks, body);
}

}  // namespace aifs::parallel
