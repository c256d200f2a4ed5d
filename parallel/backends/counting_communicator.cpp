// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/counting_communicator.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <utility>

namespace aifs::parallel {

namespace {

int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

// Counts, of the rows that `counts` shares out, those that are not this rank's; `rows` has such
// rows.
int64_t bytes_of_others(const at::Tensor& rows, const Counts& counts, int rank) {
  int64_t width = rows.element_size(), others = 0;
  for (int64_t d = 1; d < rows.dim(); ++d)
    width *= rows.size(d);
  for (size_t p = 0; p < counts.size(); ++p)
    others += static_cast<int>(p) == rank ? 0 : counts[p];
  return others * width;
}

}  // namespace

void CommunicationCount::add(Operation operation, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  OperationCount& count = counts_[static_cast<size_t>(operation)];
  ++count.calls;
  count.bytes += bytes;
}

void CommunicationCount::add(const OperationCounts& counts) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < counts.size(); ++i) {
    counts_[i].calls += counts[i].calls;
    counts_[i].bytes += counts[i].bytes;
  }
}

OperationCounts CommunicationCount::of_recorded(const std::function<void()>& work) {
  const auto take = [this](const OperationCounts& counts) {
    const std::lock_guard lock(mutex_);
    return std::exchange(counts_, counts);
  };
  const OperationCounts before = take({});
  try {
    work();
  } catch (...) {
    take(before);
    throw;
  }
  return take(before);
}

OperationCount CommunicationCount::of(Operation operation) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<size_t>(operation)];
}

std::string CommunicationCount::table() const {
  std::string text;
  for (const auto& [operation, name] : EnumNames<Operation>::table) {
    const OperationCount count = of(operation);
    if (count.calls == 0) continue;
    char line[96];
    std::snprintf(line, sizeof line, "%s%-14s %9lld calls %15lld bytes", text.empty() ? "" : "\n",
                  name, static_cast<long long>(count.calls), static_cast<long long>(count.bytes));
    text += line;
  }
  return text;
}

OperationRing::Scope CountingCommunicator::noted(Operation operation, int64_t bytes, int peer) {
  count_->add(operation, bytes);
  const char* name = EnumNames<Operation>::table[static_cast<size_t>(operation)].second;
  return {ring_.get(), group_, name, bytes, peer};
}

void CountingCommunicator::all_reduce(const at::Tensor& tensor, Reduction reduction) {
  const auto scope = noted(Operation::kAllReduce, bytes_of(tensor));
  inner_.all_reduce(tensor, reduction);
}

void CountingCommunicator::all_reduce_in_background(const at::Tensor& tensor, double factor) {
  const auto scope = noted(Operation::kAllReduce, bytes_of(tensor));
  inner_.all_reduce_in_background(tensor, factor);
}

void CountingCommunicator::broadcast(const at::Tensor& tensor, int root) {
  const auto scope = noted(Operation::kBroadcast, bytes_of(tensor));
  inner_.broadcast(tensor, root);
}

void CountingCommunicator::all_gather_rows_into(const at::Tensor& all, const at::Tensor& own,
                                                const Counts& counts) {
  const auto scope = noted(Operation::kAllGather, bytes_of_others(own, counts, rank()));
  inner_.all_gather_rows_into(all, own, counts);
}

void CountingCommunicator::reduce_scatter_rows_into(const at::Tensor& own, const at::Tensor& all,
                                                    const Counts& counts) {
  const auto scope = noted(Operation::kReduceScatter, bytes_of_others(all, counts, rank()));
  inner_.reduce_scatter_rows_into(own, all, counts);
}

void CountingCommunicator::all_to_all_rows_into(const at::Tensor& received, const at::Tensor& rows,
                                                const Counts& send_counts,
                                                const Counts& recv_counts) {
  const auto scope = noted(Operation::kAllToAll, bytes_of_others(rows, send_counts, rank()));
  inner_.all_to_all_rows_into(received, rows, send_counts, recv_counts);
}

void CountingCommunicator::send(const at::Tensor& tensor, int to) {
  const auto scope = noted(Operation::kSend, bytes_of(tensor), to);
  inner_.send(tensor, to);
}

void CountingCommunicator::receive(const at::Tensor& tensor, int from) {
  const auto scope = noted(Operation::kReceive, bytes_of(tensor), from);
  inner_.receive(tensor, from);
}

void CountingCommunicator::barrier() {
  const auto scope = noted(Operation::kBarrier, 0);
  inner_.barrier();
}

std::unique_ptr<Communicator> CountingCommunicator::split(int colour) {
  return std::unique_ptr<Communicator>(
      new CountingCommunicator(inner_.split(colour), *this, colour));
}

}  // namespace aifs::parallel
