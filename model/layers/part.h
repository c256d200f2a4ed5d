// SPDX-License-Identifier: Apache-2.0
// What a network is put together from: encoders bring source nodes to the nodes of a mesh,
// processors work on a mesh, decoders bring mesh nodes to target nodes. Any family fits anywhere.
//
// Node rows carry `copies` replicas of a node set one after another (batch and ensemble); on
// several ranks each replica holds the rank's own nodes. Edges belong to the rank of their target,
// and sources come through LocalEdges.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace aifs::model {

// Describes what an encoder hands on.
struct Encoded {
  at::Tensor data;    // (copies * N_data, width) rows of the data nodes, the decoder's targets
  at::Tensor latent;  // (copies * N_hidden, C)
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  // True if rows of data may come filled up (model/base/filling.h).
  virtual bool takes_filling() const { return false; }
  // x_data (copies * N_data, data width), x_hidden (N_hidden, hidden width) for one copy.
  virtual Encoded forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                          int64_t copies) const = 0;
};

class Processor {
 public:
  virtual ~Processor() = default;
  using State = std::vector<at::Tensor>;
  // Returns what the first layer is given: x (copies * N, C), and what layers need or hand on
  // besides. `condition` has a row per row of x, or is undefined where no norm is conditional.
  virtual State start(const at::Tensor& x, int64_t /*copies*/,
                      const at::Tensor& /*condition*/) const {
    return {x};
  }
  // Returns the state after the layers of this rank's stage.
  virtual State run(const State& state, int64_t copies) const = 0;
  // All of it, where there is one stage: x -> the same shape.
  at::Tensor forward(const at::Tensor& x, int64_t copies, const at::Tensor& condition = {}) const {
    return run(start(x, copies, condition), copies)[0];
  }
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // latent (copies * N_hidden, C), data (copies * N_data, target width) -> (copies * N_data, out),
  // perhaps filled up (model/base/filling.h).
  virtual at::Tensor forward(const at::Tensor& latent, const at::Tensor& data,
                             int64_t copies) const = 0;
};

// A processor that does nothing (autoencoders).
class NoProcessor : public Processor {
 public:
  State run(const State& state, int64_t /*copies*/) const override { return state; }
};

}  // namespace aifs::model
