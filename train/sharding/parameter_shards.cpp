// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/parameter_shards.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace aifs::train {

namespace {

using parallel::Communicator;

// Consecutive ranks of a group, `size` at a time, and those in the same place of each.
struct Groups {
  std::unique_ptr<Communicator> shard, copy;
};

Groups split_groups(Communicator& alike, const ShardingOptions& options) {
  const bool shared = options.states != Sharding::kNone;
  const int64_t size = !shared ? 1 : options.ranks == 0 ? alike.size() : options.ranks;
  if (alike.size() % size != 0) {
    throw ConfigError("parallel.sharding.ranks",
                      concat(alike.size(),
                             " ranks have the same parameters; they cannot be divided "
                             "into groups of ",
                             size));
  }
  const auto step = static_cast<int>(size);
  return {alike.split(alike.rank() / step), alike.split(alike.rank() % step)};
}

void free_memory(const at::Tensor& tensor) {
  parallel::keep_for_current_stream(tensor);
  at::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(at::DataPtr(nullptr, tensor.device()));
  storage->set_nbytes(0);
}

// Gives `tensor` the memory of `filled`, which is not used afterwards.
void take_memory(const at::Tensor& tensor, const at::Tensor& filled) {
  at::StorageImpl* from = filled.storage().unsafeGetStorageImpl();
  at::StorageImpl* to = tensor.storage().unsafeGetStorageImpl();
  const size_t bytes = from->nbytes();
  to->set_data_ptr_noswap(from->set_data_ptr(at::DataPtr(nullptr, tensor.device())));
  to->set_nbytes(bytes);
  from->set_nbytes(0);
}

}  // namespace

ParameterShards::ParameterShards(model::ParameterSet& parameters, const ShardingOptions& options,
                                 double bucket_mb, const parallel::ProcessMesh& mesh)
    : parameters_(parameters), options_(options) {
  Groups groups = split_groups(mesh.alike(), options);
  shard_group_ = std::move(groups.shard);
  copy_group_ = std::move(groups.copy);
  const auto element = static_cast<double>(at::elementSize(parameters.dtype()));
  layout_ = std::make_unique<ShardLayout>(
      parameters, static_cast<int64_t>(bucket_mb * 1e6 / element),
      options.states == Sharding::kParameters, shard_group_->size(), shard_group_->rank());
}

ParameterShards::~ParameterShards() {
  if (has_taken()) parameters_.set_keeper(nullptr);
}

at::Tensor ParameterShards::own_values(const ShardBucket& bucket) const {
  return has_taken() ? local_values_.narrow(0, bucket.local_begin, bucket.own_size)
                     : parameters_.flat_values().narrow(0, bucket.own_begin, bucket.own_size);
}

at::Tensor ParameterShards::local_values() const {
  if (has_taken()) return local_values_;
  return own(parameters_.flat_values());
}

void ParameterShards::set_local_values(const at::Tensor& local) {
  for (const ShardBucket& bucket : layout_->buckets())
    own_values(bucket).copy_(local.narrow(0, bucket.local_begin, bucket.own_size));
  publish();
}

void ParameterShards::publish() {
  if (has_taken() || shard_group_->size() == 1) return;
  for (const ShardBucket& bucket : layout_->buckets()) {
    shard_group_->all_gather_rows_into(
        parameters_.flat_values().narrow(0, bucket.begin, bucket.size()), own_values(bucket),
        bucket.counts);
  }
}

at::Tensor ParameterShards::whole(const at::Tensor& local) const {
  if (shard_group_->size() == 1) return local;
  const at::Tensor all = at::zeros({parameters_.flat_size()}, local.options());
  for (const ShardBucket& bucket : layout_->buckets()) {
    shard_group_->all_gather_rows_into(all.narrow(0, bucket.begin, bucket.size()),
                                       local.narrow(0, bucket.local_begin, bucket.own_size),
                                       bucket.counts);
  }
  return all;
}

at::Tensor ParameterShards::own(const at::Tensor& whole) const {
  if (shard_group_->size() == 1) return whole;
  std::vector<at::Tensor> parts;
  for (const ShardBucket& bucket : layout_->buckets())
    parts.push_back(whole.narrow(0, bucket.own_begin, bucket.own_size));
  return at::cat(parts);
}

void ParameterShards::take_values() {
  if (options_.states != Sharding::kParameters || has_taken()) return;
  const at::Tensor flat = parameters_.flat_values();
  const at::Tensor local = own(flat).clone();
  units_.resize(static_cast<size_t>(parameters_.num_units()) + 1);
  for (size_t b = 0; b < layout_->buckets().size(); ++b) {
    const ShardBucket& bucket = layout_->buckets()[b];
    const at::Tensor full = flat.narrow(0, bucket.begin, bucket.size()).clone();
    for (const size_t i : bucket.parameters) {
      const model::Parameter& parameter = parameters_.entries()[i];
      at::Tensor(parameter.tensor).set_data(model::view_in(full, parameter, bucket.begin));
    }
    free_memory(full);
    full_values_.push_back(full);
    units_[static_cast<size_t>(bucket.unit)].buckets.push_back(b);
  }
  local_values_ = options_.offload == Offload::kParameters ? local.cpu() : local;
  side_ = std::make_unique<parallel::SideStream>(*shard_group_, flat.device());
  parameters_.drop_flat_values();
  parameters_.set_keeper(this);
}

void ParameterShards::gather(int64_t unit) {
  Unit& wanted = units_[static_cast<size_t>(unit)];
  if (wanted.here) return;
  wanted.here = true;
  if (unit > 0) ++num_here_;
  for (const size_t b : wanted.buckets) {
    const ShardBucket& bucket = layout_->buckets()[b];
    side_->run([&] {
      const at::Tensor own = own_values(bucket).to(full_values_[b].device());
      const at::Tensor all = shard_group_->all_gather_rows(own, bucket.counts);
      take_memory(full_values_[b], all);
    });
  }
}

void ParameterShards::start_pass(int64_t kind) {
  if (!has_taken()) return;
  if (!fetched_now_.empty()) fetches_[pass_kind_] = std::move(fetched_now_);
  fetched_now_.clear();
  pass_kind_ = kind;
}

// Fetches what was fetched next in the last pass of this kind. All ranks go the same way through
// the network, so they foresee the same.
void ParameterShards::fetch_ahead() {
  const auto last = fetches_.find(pass_kind_);
  if (last == fetches_.end() || num_here_ >= options_.max_fetched) return;
  const size_t next = fetched_now_.size();
  if (next < last->second.size()) gather(last->second[next]);
}

void ParameterShards::fetch(int64_t unit) {
  if (!has_taken()) return;
  gather(unit);
  side_->join();
  if (unit == 0 || held_) return;
  fetched_now_.push_back(unit);
  if (options_.prefetch == Prefetch::kPre) fetch_ahead();
}

void ParameterShards::release(int64_t unit) {
  if (!has_taken() || held_ || !units_[static_cast<size_t>(unit)].here) return;
  drop(unit);
  if (unit > 0 && options_.prefetch == Prefetch::kPost) fetch_ahead();
}

void ParameterShards::drop(int64_t unit) {
  Unit& fetched = units_[static_cast<size_t>(unit)];
  if (!fetched.here) return;
  fetched.here = false;
  if (unit > 0) --num_here_;
  for (const size_t b : fetched.buckets)
    free_memory(full_values_[b]);
}

void ParameterShards::fetch_all() {
  if (!has_taken()) return;
  held_ = true;
  for (size_t unit = 0; unit < units_.size(); ++unit)
    gather(static_cast<int64_t>(unit));
  side_->join();
}

void ParameterShards::release_all() {
  held_ = false;
  for (size_t unit = 0; unit < units_.size(); ++unit)
    drop(static_cast<int64_t>(unit));
}

}  // namespace aifs::train
