// SPDX-License-Identifier: Apache-2.0
// Runs a network on shapes: what its operations would allocate, keep for the backward pass,
// multiply and move, without a tensor. The walks (plan/network.h) call the tape in the order in
// which the layers call LibTorch, and the tape knows what autograd keeps of each operation; a
// tensor that several operations keep counts once.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "model/layers/activation.h"

namespace aifs::plan {

// Bytes of an element.
struct Types {
  int64_t weight = 4, activation = 4;
  bool own_kernels = false;  // of a GPU, for norms and attention: without widened copies

  bool mixed() const { return weight != activation; }
  // Returns the bytes of statistics, and of operations that are never done in 16 bits.
  int64_t wide() const { return activation < 4 ? 4 : activation; }
  // Returns what such an operation keeps of its operands.
  int64_t kept() const { return own_kernels ? activation : wide(); }
};

// A tensor, or some rows of one.
struct Rows {
  int64_t rows = 0, width = 0;
  int64_t id = 0;      // of its storage; 0: no tensor
  double storage = 0;  // bytes of all of that

  Rows part(int64_t so_many) const { return {so_many, width, id, storage}; }
};

// One operation: multiply-adds count as two.
struct Work {
  double flops = 0.0;        // of matrix products, forward
  double bytes = 0.0;        // read and written, forward
  int64_t forward_runs = 1;  // 1, and one more for every recomputation around it
};

// Rows of sources that come from other ranks: bytes of one row.
struct SourceTransfer {
  double row_bytes = 0.0;
  int64_t forward_runs = 1;
};

// An exchange of attention between ranks: bytes for others and from them.
struct AttentionExchange {
  double sent = 0.0, received = 0.0;
  int64_t forward_runs = 1;
};

// A tensor that a tensor-parallel group adds up, forward or backward.
struct TensorSum {
  double bytes = 0.0;
  int64_t runs = 1;
};

// Describes what a part of the network costs.
struct PartCost {
  int64_t parameters = 0;        // trainable elements
  int64_t flat_elements = 0;     // with the padding of the flat buffers
  int64_t matrix_ends = 0;       // sum over weight matrices of rows + columns
  int64_t other_parameters = 0;  // that are no matrices
  double saved = 0.0;            // bytes kept between forward and backward pass
  double on_host = 0.0;          // and kept in the memory of the host
  double unsplit_flops = 0.0;    // of one forward pass, as a model with whole products counts
  std::vector<Work> work;
  std::vector<SourceTransfer> transfers;
  std::vector<AttentionExchange> exchanges;
  std::vector<TensorSum> tensor_sums;

  double forward_flops() const;   // of one forward pass as it is done
  double executed_flops() const;  // of a step: forward, recomputation, backward
};

class Tape {
 public:
  explicit Tape(Types types) : types_(types), frames_(1) {}

  const Types& types() const { return types_; }
  // Counts what follows as work of this part.
  void enter(PartCost& part) { part_ = &part; }
  // Most bytes at any time of the backward pass: what is still kept, and gradients and recomputed
  // tensors at hand.
  double peak() const { return peak_; }
  // A gradient that waits through everything that is on the tape so far.
  void hold(double bytes);
  // Bytes that are at hand throughout the body.
  template <class Body>
  auto holding(double bytes, const Body& body) {
    hold(bytes);
    auto result = body();
    hold(-bytes);
    return result;
  }

  // Says whether an operation stands alone, with what its backward pass needs, or is part of a
  // larger one, which keeps its operands itself and does row-wise work while it multiplies;
  // kBlocks: block of rows after block, so that its own gradients are never all there.
  enum class Keep { kAll, kFused, kBlocks };

  // Operations. Rows that come out are new tensors unless stated.
  Rows make(int64_t rows, int64_t width) { return make(rows, width, types_.activation); }
  Rows make(int64_t rows, int64_t width, int64_t element);
  Rows linear(const Rows& x, int64_t out, bool bias = true, Keep keep = Keep::kAll);
  Rows activation(const Rows& x, model::Activation kind, Keep keep = Keep::kAll);
  // A GELU that keeps its result and its derivative in 8 bits.
  Rows activation_with_slope(const Rows& x);
  Rows layer_norm(const Rows& x, bool bias = true, Keep keep = Keep::kAll);
  // A norm whose scale and shift are linear in `condition`, which has as many rows.
  Rows conditional_norm(const Rows& x, const Rows& condition);
  Rows add(const Rows& a, const Rows& b);
  Rows multiply(const Rows& a, const Rows& b);
  // x copies times, x itself for one.
  Rows repeat(const Rows& x, int64_t copies);

  // Pieces of operations.
  void weight(int64_t out, int64_t in, bool bias);
  void parameter(int64_t elements);
  void save(const Rows& x);
  void save_bytes(double bytes);
  // A weight in the type of activations, where that is another one.
  void save_weight_copy(int64_t elements);
  // rows x in times in x out; `whole_in`: what the unsplit model multiplies.
  void product(double rows, double in, double out, double whole_in);
  void product(double rows, double in, double out) { product(rows, in, out, in); }
  void unsplit(double flops) { part_->unsplit_flops += flops; }
  void move(double bytes);
  // Bytes of gradients that an operation has at hand.
  void transient(double bytes);
  void transfer(double row_bytes);
  void exchange(double sent, double received);
  void tensor_sum(double bytes);

  // The body, run again in the backward pass if wanted: then only the inputs are kept. What ends a
  // part that runs again is not run by it.
  Rows recomputed(bool wanted, const std::vector<Rows>& inputs, const std::function<Rows()>& body,
                  bool ends_part = false);
  // Returns how many bytes of tensors wait on the host.
  double save_on_host(const std::vector<Rows>& rows);
  // A body that uses weights which are registered already.
  Rows again(const std::function<Rows()>& body);

 private:
  struct Frame {  // of a recomputation, the first of the forward pass
    std::set<int64_t> saved;
    double bytes = 0.0;
    int64_t runs = 1;
  };
  Rows normalised(const Rows& x, bool widens, Keep keep);
  bool is_saved(const Rows& x) const;
  int64_t forward_runs() const;

  Types types_;
  PartCost* part_ = nullptr;
  std::vector<Frame> frames_;
  int64_t next_id_ = 1;
  double peak_ = 0.0, held_ = 0.0;
  bool registering_ = true;
};

}  // namespace aifs::plan
