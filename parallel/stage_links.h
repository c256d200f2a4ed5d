// SPDX-License-Identifier: Apache-2.0
// What the stages of a pipeline give each other, as differentiable functions: from each to the next
// one, and between the first and the last. Gradients take the same way back.
//
// The engine goes through a graph in the reverse order of its making. So one backward pass on each
// stage, of all it did in a forward pass, finds every gradient it waits for on its way, however
// often stages have met. Passes must follow each other in the same order on all stages, and
// backward passes run on one thread.
#pragma once

#include <memory>
#include <vector>

#include "parallel/communicator.h"
#include "parallel/side_stream.h"

namespace aifs::parallel {

// Two ranks, and a communicator for each direction: what waits to be sent one way does not hold up
// the other.
class Connection {
 public:
  // Groups of the two ranks alone: what the first one sends goes through `up`.
  Connection(std::unique_ptr<Communicator> up, std::unique_ptr<Communicator> down);

  // Does not wait for the other side. The tensor must not change any more.
  void send(const at::Tensor& tensor);
  void receive(const at::Tensor& tensor);

 private:
  int other() const { return 1 - up_->rank(); }
  void start(const at::Tensor& tensor);
  Communicator& out() const { return up_->rank() == 0 ? *up_ : *down_; }
  Communicator& in() const { return up_->rank() == 0 ? *down_ : *up_; }

  // Destroyed in the same order on both ranks: NCCL waits for the other one in that.
  std::unique_ptr<Communicator> up_, down_;
  bool started_ = false;
  std::unique_ptr<SideStream> side_;  // of GPU tensors that are sent, from the first on
};

class StageLinks {
 public:
  using Tensors = std::vector<at::Tensor>;

  // One stage alone.
  StageLinks() = default;
  // Collective over `stages`, ranks in order, which outlive the links.
  explicit StageLinks(Communicator& stages);

  int stage() const { return stage_; }
  int count() const { return count_; }
  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ == count_ - 1; }
  // All stages; null where there is one.
  Communicator* group() const { return group_; }

  // From every stage to the next; not called by the last. Types, shapes and whether gradients are
  // wanted travel along.
  void to_next(const Tensors& tensors);
  // Returns what the stage before has sent, on `device`; not called by the first.
  Tensors from_previous(at::Device device);
  // Tensors of the first stage on the first and on the last, tensors of the last on both; nothing
  // on those between. On one stage what is given.
  Tensors first_to_last(const Tensors& tensors, at::Device device);
  Tensors last_to_first(const Tensors& tensors, at::Device device);

  // Through which gradients come and go: `total` (undefined: none) plus a zero. What a backward
  // pass of this stage begins with; undefined if nothing of it needs a gradient.
  at::Tensor with_sent(const at::Tensor& total);

 private:
  void send(const Tensors& tensors, Connection& to);
  Tensors receive(Connection& from, at::Device device);
  void keep(const at::Tensor& zero);

  Communicator* group_ = nullptr;
  int stage_ = 0, count_ = 1;
  // Destroyed from the last one on, so that no stages wait for each other in a circle.
  std::unique_ptr<Connection> previous_, next_, other_end_;
  at::Tensor passed_;  // the sum of the zeros of all that was sent and received since with_sent()
};

}  // namespace aifs::parallel
