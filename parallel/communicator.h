// SPDX-License-Identifier: Apache-2.0
// A group of ranks that exchange tensors. Tensors in, tensors out: no pointers and no byte counts.
//
// Every operation is collective: all ranks of the group call it, in the same order, with matching
// shapes. On a GPU operations are ordered on the current stream; on the CPU they are done when the
// call returns. Rows are the first dimension; counts[p] are the rows of rank p and may differ and
// be 0. Results carry no gradient (parallel/autograd.h has the differentiable forms); they are
// written into a contiguous tensor of the caller, or returned as a new one. Errors name the
// operation and the rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/shares.h"

namespace aifs::parallel {

using Counts = std::vector<int64_t>;

enum class Reduction { kSum, kMax };

class CommunicationCount;

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Which library carries the tensors: "single", "virtual", "MPI", "NCCL".
  virtual const char* backend() const = 0;

  // In place, elementwise over ranks; every rank gets the same bits. The tensor is contiguous.
  virtual void all_reduce(const at::Tensor& tensor, Reduction reduction) = 0;
  // Zeros for sums, of `largest` elements or fewer each, that disturb least what
  // other streams compute meanwhile: over NCCL, between cards of one host, by their copy engines.
  // Undefined where there is no better way than all_reduce(). Sums in memory asked for earlier are
  // those of any tensor then.
  virtual at::Tensor background_memory(int64_t elements, int64_t largest,
                                       const at::TensorOptions& options);
  // The sum of all_reduce() times `factor`, of a piece of that memory or of any tensor.
  virtual void all_reduce_in_background(const at::Tensor& tensor, double factor);
  // In place: every rank gets the values of `root`. The tensor is contiguous.
  virtual void broadcast(const at::Tensor& tensor, int root) = 0;
  // (counts[rank], ...) from each rank to (sum of counts, ...) in rank order. `own` may be this
  // rank's rows of `all`.
  virtual void all_gather_rows_into(const at::Tensor& all, const at::Tensor& own,
                                    const Counts& counts) = 0;
  at::Tensor all_gather_rows(const at::Tensor& own, const Counts& counts);
  // (sum of counts, ...) from each rank; rank p gets the sum over ranks of its counts[p] rows.
  // `own` may be this rank's rows of `all`.
  virtual void reduce_scatter_rows_into(const at::Tensor& own, const at::Tensor& all,
                                        const Counts& counts) = 0;
  at::Tensor reduce_scatter_rows(const at::Tensor& all, const Counts& counts);
  // Sends send_counts[p] rows, grouped by receiver, to rank p; gets recv_counts[p] from rank p.
  virtual void all_to_all_rows_into(const at::Tensor& received, const at::Tensor& rows,
                                    const Counts& send_counts, const Counts& recv_counts) = 0;
  at::Tensor all_to_all_rows(const at::Tensor& rows, const Counts& send_counts,
                             const Counts& recv_counts);
  // Point to point; both sides call, and messages from one rank to another arrive in order. On the
  // CPU a send does not wait for the other side; the tensor must not change any more.
  virtual void send(const at::Tensor& tensor, int to) = 0;
  virtual void receive(const at::Tensor& tensor, int from) = 0;
  virtual void barrier() = 0;

  // The group of the ranks that pass the same colour, ordered by rank here.
  virtual std::unique_ptr<Communicator> split(int colour) = 0;

  // Returns where operations are counted; null: they are not
  // (parallel/backends/counting_communicator.h).
  virtual CommunicationCount* count() const { return nullptr; }

  // Tells ranks that wait for this one that it is at known work ("writing a checkpoint") and not
  // lost, for as long as the result lives. The work must not use any group. Null where nobody
  // watches. Thread-safe, not collective.
  virtual std::shared_ptr<void> at_work(const char* work) {
    static_cast<void>(work);
    return nullptr;
  }
  // Tells them once that this rank moves on in work that uses groups. Thread-safe, not collective.
  virtual void moves_on(const char* work) { static_cast<void>(work); }

  // Ends the whole group because this rank has failed: others blocked in an operation fail or are
  // ended. May not return.
  virtual void abort(int exit_code) = 0;
};

// One rank: every operation has its full meaning.
std::unique_ptr<Communicator> make_single_communicator();

// Parts that implementations share.

// Throws Error unless there is one count per rank and they sum to the rows of the tensor.
void check_counts(const Communicator& group, const Counts& counts, const at::Tensor& rows,
                  const char* operation);

// Throws Error unless there is one count per rank and this rank's is the rows of its tensor.
void check_own_rows(const Communicator& group, const Counts& counts, const at::Tensor& own,
                    const char* operation);
// Equal parts from every rank, one after another, added (or compared) in rank order: the same bits
// whatever carried them.
at::Tensor combine_in_rank_order(const at::Tensor& parts, int num_parts, Reduction reduction);

}  // namespace aifs::parallel
