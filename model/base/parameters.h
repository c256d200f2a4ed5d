// SPDX-License-Identifier: Apache-2.0
// The weights of a model: named tensors in the order and under the names of Anemoi's state_dict.
//
// Layers register their tensors through a ParameterScope and keep the handles. Once a model is
// built, flatten() lays all trainable values out in one buffer and all gradients in another; the
// handles then view into them, so that clearing, clipping, the optimiser, and later reductions over
// ranks work on contiguous memory.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/base/host_stash.h"
#include "model/base/stages.h"
#include "model/base/tensor_ranks.h"

namespace aifs::model {

struct Parameter {
  std::string name;
  at::Tensor tensor;          // this rank's slice, if it is sliced; no rows on other stages
  Slice slice = {};           // over tensor ranks
  Slice stage = {};           // of that, over stages: all or nothing
  bool trainable = true;      // false: a buffer, saved but not optimised
  bool unused = false;        // trainable in name only: nothing depends on it, no gradient comes
  std::string alias_of = {};  // another name of the same tensor, saved twice, optimised once
  int64_t offset = -1;        // of a trainable tensor in the flat buffers, in elements
  int64_t unit = 0;           // the one that uses it (ParameterSet::add_unit()), 0 for none

  // True if it has a place in the flat buffers.
  bool is_optimised() const { return trainable && alias_of.empty(); }
};

// The place of an optimised tensor in a flat buffer that begins at element `begin` of the whole
// ones, as a view of its shape.
at::Tensor view_in(const at::Tensor& flat, const Parameter& parameter, int64_t begin = 0);

// The shape over all ranks.
std::vector<int64_t> whole_sizes(const Parameter& parameter);
// The whole tensor from this rank's slice of it or of a tensor laid out like it (a moment), on all
// ranks that hold slices and on all stages. Collective over these.
at::Tensor whole_tensor(const Parameter& parameter, const at::Tensor& own);
// This rank's slice of a whole tensor, on its stage.
at::Tensor own_slice(const Parameter& parameter, const at::Tensor& whole);

// How a tensor starts.
struct Init {
  enum class Kind { kZeros, kOnes, kUniform };
  Kind kind = Kind::kZeros;
  double bound = 0.0;  // uniform in [-bound, bound)

  static Init zeros() { return {Kind::kZeros, 0.0}; }
  static Init ones() { return {Kind::kOnes, 0.0}; }
  static Init uniform(double bound) { return {Kind::kUniform, bound}; }
};

// Keeps the tensors of units somewhere else and brings them when they are needed.
class UnitKeeper {
 public:
  virtual ~UnitKeeper() = default;
  // The tensors of the unit have their values from here on ...
  virtual void fetch(int64_t unit) = 0;
  // ... and are not needed for now.
  virtual void release(int64_t unit) = 0;
};

class ParameterSet {
 public:
  // Tensors are created on the CPU with this type; `seed` starts the generator of initial values.
  ParameterSet(at::ScalarType dtype, uint64_t seed) : ParameterSet(dtype, seed, dtype) {}
  // Mixed precision: activations in a type of their own (model/base/precision.h).
  ParameterSet(at::ScalarType dtype, uint64_t seed, at::ScalarType activation_type);

  at::ScalarType dtype() const { return dtype_; }
  at::ScalarType activation_type() const { return activation_type_; }
  const std::vector<Parameter>& entries() const { return entries_; }
  // Throws Error listing near names if there is no such entry.
  const Parameter& at(const std::string& name) const;
  bool contains(const std::string& name) const { return index_.count(name) != 0; }

  // Layers that know how are sliced over the ranks of this group, which outlives the set; call
  // before they are built.
  void slice_over(parallel::Communicator& group) { tensor_ranks_ = TensorRanks(group); }
  const TensorRanks& tensor_ranks() const { return tensor_ranks_; }
  // Tensors are kept on the stage that uses them; call before layers are built.
  void divide_over(const Stages& stages) { stages_ = stages; }
  const Stages& stages() const { return stages_; }

  // `sizes` are those of the whole tensor, and its slices start as on one rank. Without rows and
  // gradient on stages that do not keep it.
  at::Tensor add(const std::string& name, at::IntArrayRef sizes, Init init, const Slice& slice = {},
                 int stage = 0);
  at::Tensor add_buffer(const std::string& name, const at::Tensor& value);
  // Says of all tensors whose names start with `prefix` that nothing depends on them. The optimiser
  // leaves them alone, weight decay included.
  void mark_unused(const std::string& prefix);
  void add_alias(const std::string& name, const std::string& existing);
  // A tensor that is neither saved nor optimised but must be on the model's device.
  at::Tensor add_constant(const at::Tensor& value);

  // The tensors added since there were `first` entries are a unit: a layer that alone uses them,
  // and runs through in_unit(). Returns its number, from 1.
  int64_t add_unit(size_t first);
  int64_t num_units() const { return num_units_; }
  void set_keeper(UnitKeeper* keeper) { keeper_ = keeper; }
  UnitKeeper* keeper() const { return keeper_; }

  // Returns where inputs of layers may wait on the host for the backward pass.
  HostStash& stash() const { return *stash_; }

  // Trainable elements of whole tensors, not counting aliases and padding.
  int64_t num_trainable() const;

  // Lays values and gradients out flat on `device`; call once, before the first use.
  void flatten(at::Device device);
  bool is_flat() const { return flat_size_ >= 0; }
  int64_t flat_size() const { return flat_size_; }
  // One-dimensional; every tensor starts at a multiple of kAlignment elements, padding is zero.
  const at::Tensor& flat_values() const { return flat_values_; }
  const at::Tensor& flat_gradients() const { return flat_gradients_; }
  // Returns where slices begin in the flat buffers; before are the whole tensors.
  int64_t first_sliced() const { return first_sliced_; }
  // Gives a buffer up: whoever shards gradients or values keeps them elsewhere. It is undefined
  // then.
  void drop_flat_gradients();
  // Gradients are views into `flat` from now on, of the size and type of flat_gradients().
  void set_flat_gradients(const at::Tensor& flat);
  void drop_flat_values();
  void zero_gradients();
  // The gradient of one trainable tensor, a view into flat_gradients().
  at::Tensor gradient(const Parameter& parameter) const;

  // Makes or renews a copy of all values in the type of the activations, where that is another
  // one: products take their weights from it instead of casting each.
  void update_working_values();
  // A trainable tensor of this set in `type`, without a gradient: itself, a view of that copy, or
  // cast.
  at::Tensor working(const at::Tensor& parameter, at::ScalarType type) const;

  // Copies a whole tensor in, or its own slice; the shape must match. Throws Error naming the
  // tensor.
  void assign(const std::string& name, const at::Tensor& value);

  static constexpr int64_t kAlignment = 64;

 private:
  Parameter& insert(Parameter parameter);

  at::ScalarType dtype_, activation_type_;
  TensorRanks tensor_ranks_;
  Stages stages_;
  at::Generator generator_;
  std::vector<Parameter> entries_;
  std::map<std::string, size_t> index_;
  std::vector<at::Tensor> constants_;
  at::Tensor flat_values_, flat_gradients_, flat_working_;
  int64_t flat_size_ = -1, first_sliced_ = 0;
  int64_t num_units_ = 0;
  UnitKeeper* keeper_ = nullptr;
  std::unique_ptr<HostStash> stash_ = std::make_unique<HostStash>();
};

// A place in the tree of names: scope / "mlp" / "0" adds "mlp.0." in front.
class ParameterScope {
 public:
  explicit ParameterScope(ParameterSet& set, std::string prefix = {})
      : set_(&set), prefix_(std::move(prefix)) {}

  ParameterScope operator/(const std::string& name) const;
  ParameterScope operator/(int64_t index) const { return *this / std::to_string(index); }
  std::string name(const std::string& leaf) const;

  // A tensor of this name; in a shared scope the one that is there already, if there is one. Throws
  // Error if that has another shape.
  at::Tensor add(const std::string& leaf, at::IntArrayRef sizes, Init init,
                 const Slice& slice = {}) const;
  // Another name, `alias`, for `existing`; both relative to the scope.
  void add_alias(const std::string& alias, const std::string& existing) const;
  // Returns the same place for a part that uses the tensors of another one like it.
  ParameterScope shared() const {
    ParameterScope scope = *this;
    scope.shared_ = true;
    return scope;
  }
  // Returns the same place for a part whose layers are sliced over the tensor ranks of the set.
  ParameterScope sliced() const {
    ParameterScope scope = *this;
    scope.ranks_ = set_->tensor_ranks();
    return scope;
  }
  // Returns the same place for a part that is on the stage of a processor layer, or on the last
  // one; others are on the first.
  ParameterScope of_layer(int64_t layer) const {
    return on_stage(set_->stages().of_layer(first_layer_ + layer));
  }
  ParameterScope on_last_stage() const { return on_stage(set_->stages().last()); }
  // Returns the same place for a processor whose first layer is this one of all processors' layers.
  ParameterScope from_layer(int64_t layer) const {
    ParameterScope scope = of_layer(layer);
    scope.first_layer_ = layer;
    return scope;
  }
  int64_t first_layer() const { return first_layer_; }
  // Over which a layer is to be sliced: none unless the scope is sliced.
  const TensorRanks& ranks() const { return ranks_; }
  at::Tensor add_buffer(const std::string& leaf, const at::Tensor& value) const {
    return set_->add_buffer(name(leaf), value);
  }
  at::ScalarType dtype() const { return set_->dtype(); }
  at::ScalarType activation_type() const { return set_->activation_type(); }
  ParameterSet& set() const { return *set_; }

 private:
  ParameterScope on_stage(int stage) const {
    ParameterScope scope = *this;
    scope.stage_ = stage;
    return scope;
  }

  ParameterSet* set_;
  std::string prefix_;
  bool shared_ = false;
  int stage_ = 0;
  int64_t first_layer_ = 0;
  TensorRanks ranks_;
};

}  // namespace aifs::model
