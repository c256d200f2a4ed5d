// SPDX-License-Identifier: Apache-2.0
#include "model/base/parameters.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "core/check.h"

namespace aifs::model {

at::Tensor view_in(const at::Tensor& flat, const Parameter& parameter, int64_t begin) {
  return flat.narrow(0, parameter.offset - begin, parameter.tensor.numel())
      .view(parameter.tensor.sizes());
}

std::vector<int64_t> whole_sizes(const Parameter& parameter) {
  std::vector<int64_t> sizes = parameter.tensor.sizes().vec();
  for (const Slice* slice : {&parameter.stage, &parameter.slice}) {
    if (slice->group)
      sizes[static_cast<size_t>(slice->dimension)] = starts_of(slice->counts).back();
  }
  return sizes;
}

at::Tensor whole_tensor(const Parameter& parameter, const at::Tensor& own) {
  at::Tensor whole = own;
  for (const Slice* slice : {&parameter.stage, &parameter.slice}) {
    if (!slice->group) continue;
    const at::Tensor rows = whole.detach().transpose(0, slice->dimension).contiguous();
    whole = slice->group->all_gather_rows(rows, slice->counts).transpose(0, slice->dimension);
  }
  return whole;
}

at::Tensor own_slice(const Parameter& parameter, const at::Tensor& whole) {
  return parameter.stage.of(parameter.slice.of(whole));
}

ParameterSet::ParameterSet(at::ScalarType dtype, uint64_t seed, at::ScalarType activation_type)
    : dtype_(dtype),
      activation_type_(activation_type),
      generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}

Parameter& ParameterSet::insert(Parameter parameter) {
  AIFS_CHECK(!is_flat(), "tensor '", parameter.name, "' comes after flatten()");
  AIFS_CHECK(index_.emplace(parameter.name, entries_.size()).second, "two tensors are called '",
             parameter.name, "'");
  return entries_.emplace_back(std::move(parameter));
}

at::Tensor ParameterSet::add(const std::string& name, at::IntArrayRef sizes, Init init,
                             const Slice& slice, int stage) {
  const auto options = at::TensorOptions().dtype(dtype_);
  at::Tensor value;
  switch (init.kind) {
    case Init::Kind::kZeros:
      value = at::zeros(sizes, options);
      break;
    case Init::Kind::kOnes:
      value = at::ones(sizes, options);
      break;
    case Init::Kind::kUniform:
      // Drawn in fp32 whatever the type, so that an fp64 model starts from the same numbers.
      value = at::empty(sizes, options.dtype(at::kFloat))
                  .uniform_(-init.bound, init.bound, generator_)
                  .to(dtype_);
      break;
  }
  Parameter parameter{.name = name,
                      .tensor = {},
                      .slice = slice,
                      .stage = stages_.slice(stage, slice.of(value).size(0))};
  const at::Tensor own = own_slice(parameter, value);
  parameter.tensor = own.is_same(value) ? value : own.clone();
  parameter.tensor.set_requires_grad(stages_.is_here(stage));
  return insert(std::move(parameter)).tensor;
}

at::Tensor ParameterSet::add_buffer(const std::string& name, const at::Tensor& value) {
  return insert({.name = name, .tensor = value.clone(), .trainable = false}).tensor;
}

void ParameterSet::mark_unused(const std::string& prefix) {
  for (Parameter& entry : entries_)
    entry.unused = entry.unused || entry.name.starts_with(prefix);
}

void ParameterSet::add_alias(const std::string& name, const std::string& existing) {
  Parameter alias = at(existing);
  alias.alias_of = existing;
  alias.name = name;
  insert(std::move(alias));
}

at::Tensor ParameterSet::add_constant(const at::Tensor& value) {
  AIFS_CHECK(!is_flat(), "a constant comes after flatten()");
  return constants_.emplace_back(value.clone());
}

const Parameter& ParameterSet::at(const std::string& name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return entries_[found->second];
  std::vector<std::string> names;
  for (const Parameter& entry : entries_)
    names.push_back(entry.name);
  throw Error(concat("the model has no tensor '", name, "'"), nearest_names(name, names));
}

int64_t ParameterSet::add_unit(size_t first) {
  ++num_units_;
  for (size_t i = first; i < entries_.size(); ++i)
    entries_[i].unit = num_units_;
  return num_units_;
}

int64_t ParameterSet::num_trainable() const {
  int64_t count = 0;
  for (const Parameter& entry : entries_) {
    if (entry.is_optimised()) count += c10::multiply_integers(whole_sizes(entry));
  }
  return count;
}

void ParameterSet::flatten(at::Device device) {
  AIFS_CHECK(!is_flat(), "the parameters are flat already");
  int64_t total = 0;
  for (const bool sliced : {false, true}) {
    first_sliced_ = total;
    for (Parameter& entry : entries_) {
      const bool is_sliced = entry.slice.group != nullptr;
      if (!entry.is_optimised() || is_sliced != sliced) continue;
      entry.offset = total;
      // An empty slice has a place of its own, too.
      total +=
          (std::max<int64_t>(entry.tensor.numel(), 1) + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  const auto options = at::TensorOptions().dtype(dtype_).device(device);
  flat_size_ = total;
  flat_values_ = at::zeros({total}, options);
  flat_gradients_ = at::zeros({total}, options);
  for (at::Tensor& constant : constants_)
    constant.set_data(constant.to(device));
  for (Parameter& entry : entries_) {
    if (!entry.alias_of.empty()) continue;
    if (!entry.trainable) {
      entry.tensor.set_data(entry.tensor.to(device));
      continue;
    }
    const at::Tensor place = view_in(flat_values_, entry);
    place.copy_(entry.tensor.detach());
    entry.tensor.set_data(place);
  }
  set_flat_gradients(flat_gradients_);
}

void ParameterSet::set_flat_gradients(const at::Tensor& flat) {
  flat_gradients_ = flat;
  for (const Parameter& entry : entries_) {
    if (entry.offset >= 0)
      at::Tensor(entry.tensor).mutable_grad() = flat.defined() ? gradient(entry) : at::Tensor();
  }
}

void ParameterSet::drop_flat_gradients() {
  set_flat_gradients({});
}

void ParameterSet::zero_gradients() {
  if (flat_gradients_.defined()) flat_gradients_.zero_();
}

void ParameterSet::drop_flat_values() {
  flat_values_.reset();
  flat_working_.reset();
}

at::Tensor ParameterSet::gradient(const Parameter& parameter) const {
  AIFS_CHECK(flat_gradients_.defined() && parameter.offset >= 0, "'", parameter.name,
             "' has no flat gradient");
  return view_in(flat_gradients_, parameter);
}

void ParameterSet::update_working_values() {
  if (!flat_values_.defined() || activation_type_ == dtype_) return;
  if (!flat_working_.defined())
    flat_working_ = at::empty_like(flat_values_, flat_values_.options().dtype(activation_type_));
  flat_working_.copy_(flat_values_);
}

at::Tensor ParameterSet::working(const at::Tensor& parameter, at::ScalarType type) const {
  if (!flat_working_.defined() || type != activation_type_) return parameter.detach().to(type);
  return flat_working_.as_strided(parameter.sizes(), parameter.strides(),
                                  parameter.storage_offset());
}

void ParameterSet::assign(const std::string& name, const at::Tensor& value) {
  const Parameter& entry = at(name);
  const std::vector<int64_t> sizes = whole_sizes(entry);
  if (value.sizes() != sizes) {
    throw Error(concat("tensor '", name, "' has shape ", at::IntArrayRef(sizes), ", the given one ",
                       value.sizes()));
  }
  entry.tensor.detach().copy_(own_slice(entry, value));
}

ParameterScope ParameterScope::operator/(const std::string& name) const {
  ParameterScope inner = *this;
  inner.prefix_ = this->name(name);
  return inner;
}

at::Tensor ParameterScope::add(const std::string& leaf, at::IntArrayRef sizes, Init init,
                               const Slice& slice) const {
  const std::string full = name(leaf);
  if (!shared_ || !set_->contains(full)) return set_->add(full, sizes, init, slice, stage_);
  const Parameter& existing = set_->at(full);
  if (const std::vector<int64_t> found = whole_sizes(existing); sizes != found) {
    throw Error(concat("tensor '", full, "' has shape ", at::IntArrayRef(found),
                       ", another part wants to share it as ", sizes));
  }
  return existing.tensor;
}

void ParameterScope::add_alias(const std::string& alias, const std::string& existing) const {
  if (shared_ && set_->contains(name(alias))) return;
  set_->add_alias(name(alias), name(existing));
}

std::string ParameterScope::name(const std::string& leaf) const {
  return prefix_.empty() ? leaf : concat(prefix_, ".", leaf);
}

}  // namespace aifs::model
