// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/gradient_reducer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdio>

#include "core/check.h"

namespace aifs::train {

namespace {

bool gets_gradients(const model::Parameter& parameter) {
  return parameter.is_optimised() && parameter.tensor.requires_grad();
}

const char* name_of(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return "bf16";
    case at::kHalf:
      return "fp16";
    case at::kDouble:
      return "fp64";
    default:
      return "fp32";
  }
}

std::optional<at::ScalarType> wire_type(Compression compression) {
  if (compression == Compression::kBf16) return at::kBFloat16;
  if (compression == Compression::kFp16) return at::kHalf;
  return std::nullopt;
}

}  // namespace

// Told after each gradient that a parameter gets.
class GradientReducer::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientReducer& reducer, size_t parameter) : reducer_(reducer), parameter_(parameter) {}
  void operator()(const at::Tensor& /*tensor*/) override { reducer_.arrived(parameter_); }

 private:
  GradientReducer& reducer_;
  size_t parameter_;
};

GradientReducer::GradientReducer(model::ParameterSet& parameters, ParameterShards& shards,
                                 const ReductionOptions& options, const parallel::ProcessMesh& mesh,
                                 uint64_t seed)
    : parameters_(parameters),
      shards_(shards),
      options_(options),
      mesh_(mesh),
      power_sgd_(parameters, options, seed),
      side_(mesh.alike(), parameters.flat_values().device()) {
  if (!reduces()) return;
  if (keeps_parts()) {
    local_gradients_ =
        at::zeros({shards.layout().local_size()}, parameters.flat_values().options());
    parameters.drop_flat_gradients();
    passing_.resize(shards.layout().buckets().size());
  } else {
    move_gradients();
  }
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const model::Parameter& parameter = parameters.entries()[i];
    if (!gets_gradients(parameter)) continue;
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor,
                                                   std::make_unique<Hook>(*this, i));
    if (keeps_parts()) {
      // Called without a gradient, too, where one was added in place.
      prepare_hooks_.emplace_back(
          i, parameter.tensor.register_hook([this, i](const at::Tensor& gradient) {
            if (gradient.defined()) prepare(i);
          }));
    }
  }
}

GradientReducer::~GradientReducer() {
  for (const auto& [i, hook] : prepare_hooks_)
    parameters_.entries()[i].tensor.remove_hook(hook);
  if (!reduces()) return;
  for (const model::Parameter& parameter : parameters_.entries()) {
    if (gets_gradients(parameter))
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
  }
}

void GradientReducer::start_step(int64_t step) {
  step_ = step;
  parameters_.zero_gradients();
  if (local_gradients_.defined()) local_gradients_.zero_();
}

void GradientReducer::start_pass(int64_t kind, bool last) {
  active_ = reduces() && (last || keeps_parts());
  if (!active_) return;
  kind_ = kind;
  const auto plan = plans_.find(kind);
  plan_ = plan == plans_.end() ? nullptr : &plan->second;
  arrivals_of_parameter_.assign(parameters_.entries().size(), 0);
  arrivals_of_bucket_.assign(shards_.layout().buckets().size(), 0);
  finished_.clear();
  num_reduced_ = 0;
}

// Before a parameter's gradient is added to what it has: memory for its bucket.
void GradientReducer::prepare(size_t parameter) {
  const size_t b = shards_.layout().bucket_of(parameter);
  if (passing_[b].defined()) return;
  const ShardBucket& bucket = shards_.layout().buckets()[b];
  passing_[b] = at::zeros({bucket.size()}, local_gradients_.options());
  for (const size_t i : bucket.parameters) {
    const model::Parameter& entry = parameters_.entries()[i];
    at::Tensor(entry.tensor).mutable_grad() = model::view_in(passing_[b], entry, bucket.begin);
  }
}

void GradientReducer::arrived(size_t parameter) {
  if (!active_) return;
  const size_t b = shards_.layout().bucket_of(parameter);
  ++arrivals_of_parameter_[parameter];
  ++arrivals_of_bucket_[b];
  if (!plan_) {
    std::erase(finished_, b);
    finished_.push_back(b);
    return;
  }
  AIFS_CHECK(arrivals_of_bucket_[b] <= plan_->arrivals[b], "a gradient of '",
             parameters_.entries()[parameter].name,
             "' came after those of its bucket were reduced");
  if (arrivals_of_bucket_[b] == plan_->arrivals[b]) reduce_complete();
}

void GradientReducer::reduce_complete() {
  while (num_reduced_ < plan_->order.size()) {
    const size_t next = plan_->order[num_reduced_];
    if (arrivals_of_bucket_[next] < plan_->arrivals[next]) return;
    ++num_reduced_;
    reduce(next);
  }
}

at::Tensor GradientReducer::bucket_gradients(size_t b) const {
  if (keeps_parts()) return passing_[b];
  const ShardBucket& bucket = shards_.layout().buckets()[b];
  return parameters_.flat_gradients().narrow(0, bucket.begin, bucket.size());
}

// Reduces several buckets all but the last are reduced beside the backward pass.
bool GradientReducer::sums_in_background() const {
  return shards_.copy_group().size() > 1 && shards_.layout().buckets().size() > 1;
}

// To memory whose sums disturb the backward pass least.
void GradientReducer::move_gradients() {
  const at::Tensor& flat = parameters_.flat_gradients();
  if (!sums_in_background() || options_.compression != Compression::kNone) return;
  int64_t largest = 0;
  for (const ShardBucket& bucket : shards_.layout().buckets())
    largest = std::max(largest, bucket.own_size);
  const at::Tensor moved =
      shards_.copy_group().background_memory(flat.numel(), largest, flat.options());
  if (!moved.defined()) return;
  parameters_.set_flat_gradients(moved);
  background_bytes_ = static_cast<int64_t>(moved.storage().nbytes());
}

// Sums over copies, times `factor`.
void GradientReducer::sum_over_copies(const at::Tensor& gradients, double factor) {
  parallel::Communicator& copies = shards_.copy_group();
  // Nothing is left to be disturbed by the last one.
  const bool is_last = num_reduced_ == plan_->order.size();
  if (sums_in_background() && !is_last) return copies.all_reduce_in_background(gradients, factor);
  if (copies.size() > 1) copies.all_reduce(gradients, parallel::Reduction::kSum);
  if (factor != 1.0) gradients.mul_(factor);
}

void GradientReducer::reduce(size_t b) {
  const ShardBucket& bucket = shards_.layout().buckets()[b];
  // A bucket that only other ranks have gradients for has none here.
  if (keeps_parts()) prepare(bucket.parameters.front());
  const at::Tensor gradients = bucket_gradients(b);
  const double mean = 1.0 / static_cast<double>(mesh_.sizes().data);
  const bool power_sgd =
      options_.compression == Compression::kPowerSgd && step_ >= options_.start_step;
  side_.run([&] {
    if (power_sgd) {
      power_sgd_.reduce(bucket, gradients, shards_.copy_group());
      gradients.mul_(mean);
      return;
    }
    const auto type = wire_type(options_.compression);
    const at::Tensor sent = type ? gradients.mul(mean).to(*type) : gradients;
    const at::Tensor own = sent.narrow(0, bucket.own_begin - bucket.begin, bucket.own_size);
    if (shards_.shard_group().size() > 1)
      shards_.shard_group().reduce_scatter_rows_into(own, sent, bucket.counts);
    sum_over_copies(own, type ? 1.0 : mean);
    if (keeps_parts()) {
      own_gradients(bucket).add_(own);
    } else if (type) {
      own_gradients(bucket).copy_(own);
    }
  });
  if (!keeps_parts()) return;
  side_.keep(passing_[b]);
  passing_[b].reset();
  for (const size_t i : bucket.parameters)
    at::Tensor(parameters_.entries()[i].tensor).mutable_grad() = at::Tensor();
  // Slices of a layer have a bucket of their own.
  const bool unit_done = std::none_of(
      plan_->order.begin() + static_cast<int64_t>(num_reduced_), plan_->order.end(),
      [&](size_t later) { return shards_.layout().buckets()[later].unit == bucket.unit; });
  if (bucket.unit > 0 && unit_done && is_trained_whole(bucket.unit)) shards_.release(bucket.unit);
}

// Frozen values of a layer may still be needed when its last gradient has come.
bool GradientReducer::is_trained_whole(int64_t unit) const {
  const auto& entries = parameters_.entries();
  return std::all_of(entries.begin(), entries.end(), [unit](const model::Parameter& parameter) {
    return parameter.unit != unit || parameter.offset < 0 || parameter.tensor.requires_grad();
  });
}

GradientReducer::Plan GradientReducer::learn() {
  const auto count = static_cast<int64_t>(finished_.size());
  const at::Tensor size = at::full({1}, count, at::kLong);
  mesh_.alike().broadcast(size, 0);
  const at::Tensor order = at::zeros({size.item<int64_t>()}, at::kLong);
  if (mesh_.alike().rank() == 0) {
    std::copy(finished_.begin(), finished_.end(), order.mutable_data_ptr<int64_t>());
  }
  mesh_.alike().broadcast(order, 0);
  const int64_t* data = order.const_data_ptr<int64_t>();
  return {.arrivals = arrivals_of_bucket_, .order = {data, data + order.numel()}};
}

void GradientReducer::check_all_used() const {
  std::string names;
  int64_t unused = 0;
  for (size_t i = 0; i < parameters_.entries().size(); ++i) {
    const model::Parameter& parameter = parameters_.entries()[i];
    if (!gets_gradients(parameter) || parameter.unused || arrivals_of_parameter_[i] > 0) continue;
    if (++unused <= 8) names += concat(names.empty() ? "'" : ", '", parameter.name, "'");
  }
  if (unused == 0) return;
  throw Error(concat(unused, " parameters got no gradient: ", names, unused > 8 ? ", ..." : ""),
              "leave them out of training by name: optimizer.freeze");
}

void GradientReducer::end_pass() {
  if (!active_) return;
  active_ = false;
  if (!plan_) {
    check_all_used();
    plan_ = &plans_.insert_or_assign(kind_, learn()).first->second;
  }
  reduce_complete();
  AIFS_CHECK(num_reduced_ == plan_->order.size(), num_reduced_, " of ", plan_->order.size(),
             " buckets of gradients were complete after the backward pass");
  side_.join();
}

void GradientReducer::abandon_pass() {
  if (!active_) return;
  active_ = false;
  if (!plan_) {  // the others learn an order in this pass, from this rank if it is the first
    for (size_t b = 0; b < shards_.layout().buckets().size(); ++b) {
      if (std::count(finished_.begin(), finished_.end(), b) == 0) finished_.push_back(b);
    }
    plan_ = &plans_.insert_or_assign(kind_, learn()).first->second;
  }
  while (num_reduced_ < plan_->order.size())
    reduce(plan_->order[num_reduced_++]);
  side_.join();
}

at::Tensor GradientReducer::own_gradients(const ShardBucket& bucket) const {
  return local_gradients_.defined()
             ? local_gradients_.narrow(0, bucket.local_begin, bucket.own_size)
             : parameters_.flat_gradients().narrow(0, bucket.own_begin, bucket.own_size);
}

OwnGradients GradientReducer::own_gradients() const {
  OwnGradients own{.shards = &shards_.shard_group(),
                   .tensor_ranks = &mesh_.tensor(),
                   .stages = &mesh_.pipeline()};
  const auto split = [&](const at::Tensor& flat, int64_t first_sliced) {
    own.whole = {flat.narrow(0, 0, first_sliced)};
    if (first_sliced < flat.numel())
      own.sliced = {flat.narrow(0, first_sliced, flat.numel() - first_sliced)};
  };
  if (local_gradients_.defined()) {
    split(local_gradients_, shards_.layout().local_first_sliced());
  } else if (shards_.shard_group().size() == 1) {
    split(parameters_.flat_gradients(), parameters_.first_sliced());
  } else {
    for (const ShardBucket& bucket : shards_.layout().buckets())
      (bucket.sliced ? own.sliced : own.whole).push_back(own_gradients(bucket));
  }
  return own;
}

std::string GradientReducer::describe() const {
  const auto type = wire_type(options_.compression);
  const bool power_sgd = options_.compression == Compression::kPowerSgd;
  int64_t elements = 0;
  for (const ShardBucket& bucket : shards_.layout().buckets())
    elements += power_sgd ? power_sgd_.elements_sent(bucket) : bucket.size();
  const at::ScalarType sent = type ? *type : parameters_.dtype();
  const double megabytes =
      1e-6 * static_cast<double>(elements) * static_cast<double>(at::elementSize(sent));
  char text[96];
  std::snprintf(text, sizeof text, "%zu buckets, %.1f MB %s as %s",
                shards_.layout().buckets().size(), megabytes, keeps_parts() ? "a batch" : "a step",
                name_of(sent));
  return concat(text, power_sgd ? ", factors of PowerSGD" : "");
}

}  // namespace aifs::train
