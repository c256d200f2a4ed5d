// SPDX-License-Identifier: Apache-2.0
#include "plan/tape.h"

#include <algorithm>

#include "model/base/parameters.h"

namespace aifs::plan {

double PartCost::forward_flops() const {
  double sum = 0.0;
  for (const Work& w : work)
    sum += w.flops;
  return sum;
}

double PartCost::executed_flops() const {
  double sum = 0.0;
  for (const Work& w : work)
    sum += w.flops * static_cast<double>(w.forward_runs + 2);
  return sum;
}

void Tape::hold(double bytes) {
  held_ += bytes;
}

Rows Tape::make(int64_t rows, int64_t width, int64_t element) {
  return {rows, width, next_id_++,
          static_cast<double>(rows) * static_cast<double>(width) * static_cast<double>(element)};
}

bool Tape::is_saved(const Rows& x) const {
  return std::any_of(frames_.begin(), frames_.end(),
                     [&](const Frame& frame) { return frame.saved.count(x.id) != 0; });
}

int64_t Tape::forward_runs() const {
  int64_t runs = 0;
  for (const Frame& frame : frames_)
    runs += frame.runs;
  return runs;
}

void Tape::save(const Rows& x) {
  if (x.id == 0 || is_saved(x)) return;
  frames_.back().saved.insert(x.id);
  save_bytes(x.storage);
}

double Tape::save_on_host(const std::vector<Rows>& rows) {
  double bytes = 0.0;
  for (const Rows& x : rows) {
    if (is_saved(x)) continue;
    frames_.front().saved.insert(x.id);
    bytes += x.storage;
  }
  part_->on_host += bytes;
  return bytes;
}

void Tape::save_bytes(double bytes) {
  frames_.back().bytes += bytes;
  if (frames_.size() == 1) part_->saved += bytes;
  transient(0.0);
}

void Tape::save_weight_copy(int64_t elements) {
  if (types_.mixed()) save_bytes(static_cast<double>(elements * types_.activation));
}

void Tape::transient(double bytes) {
  double now = bytes + held_;
  for (const Frame& frame : frames_)
    now += frame.bytes;
  peak_ = std::max(peak_, now);
}

void Tape::parameter(int64_t elements) {
  if (!registering_) return;
  constexpr int64_t kAlignment = model::ParameterSet::kAlignment;
  part_->parameters += elements;
  part_->flat_elements += (elements + kAlignment - 1) / kAlignment * kAlignment;
  part_->other_parameters += elements;
}

void Tape::weight(int64_t out, int64_t in, bool bias) {
  if (!registering_) return;
  parameter(out * in);
  part_->other_parameters -= out * in;
  part_->matrix_ends += out + in;
  if (bias) parameter(out);
}

void Tape::product(double rows, double in, double out, double whole_in) {
  const auto element = static_cast<double>(types_.activation);
  part_->work.push_back(
      {2.0 * rows * in * out, (rows * (in + out) + in * out) * element, forward_runs()});
  unsplit(2.0 * rows * whole_in * out);
}

void Tape::move(double bytes) {
  part_->work.push_back({0.0, bytes, forward_runs()});
}

void Tape::transfer(double row_bytes) {
  part_->transfers.push_back({row_bytes, forward_runs()});
}

void Tape::exchange(double sent, double received) {
  part_->exchanges.push_back({sent, received, forward_runs()});
}

void Tape::tensor_sum(double bytes) {
  part_->tensor_sums.push_back({bytes, forward_runs()});
}

Rows Tape::linear(const Rows& x, int64_t out, bool bias, Keep keep) {
  weight(out, x.width, bias);
  if (keep == Keep::kAll) {
    save(x);
    save_weight_copy(out * x.width);
  }
  product(static_cast<double>(x.rows), static_cast<double>(x.width), static_cast<double>(out));
  const Rows y = make(x.rows, out);
  if (keep != Keep::kBlocks)
    transient(static_cast<double>(x.rows * (x.width + out) * types_.activation));
  return y;
}

Rows Tape::activation(const Rows& x, model::Activation kind, Keep keep) {
  using model::Activation;
  if (kind == Activation::kIdentity) return x;
  const Rows y = make(x.rows, x.width);
  const bool keeps_result =
      kind == Activation::kRelu || kind == Activation::kTanh || kind == Activation::kSigmoid;
  save(keeps_result ? y : x);
  if (keep == Keep::kAll) move(x.storage + y.storage);
  if (keep != Keep::kBlocks) transient(x.storage + y.storage);
  return y;
}

Rows Tape::activation_with_slope(const Rows& x) {
  const Rows y = make(x.rows, x.width), slope = make(x.rows, x.width, 1);
  save(y);
  save(slope);
  return y;
}

Rows Tape::layer_norm(const Rows& x, bool bias, Keep keep) {
  parameter(x.width);
  if (bias) parameter(x.width);
  return normalised(
      x, keep == Keep::kAll && types_.activation < (bias ? types_.kept() : types_.wide()), keep);
}

Rows Tape::normalised(const Rows& x, bool widens, Keep keep) {
  const Rows y = make(x.rows, x.width);
  const Rows input = widens ? make(x.rows, x.width, types_.wide()) : x;
  save(input);
  save_bytes(static_cast<double>(2 * x.rows * types_.wide()));
  move(x.storage + y.storage);
  if (keep != Keep::kBlocks)
    transient(x.storage + y.storage + (widens ? 2.0 * input.storage : 0.0));
  return y;
}

Rows Tape::conditional_norm(const Rows& x, const Rows& condition) {
  const Rows y = normalised(x, types_.activation < types_.wide(), Keep::kAll);
  const Rows scale = linear(condition, x.width), shift = linear(condition, x.width);
  save(y);
  save(scale);
  return add(add(y, scale), shift);
}

Rows Tape::add(const Rows& a, const Rows& b) {
  const Rows sum = make(a.rows, a.width);
  move(3.0 * sum.storage);
  transient(a.storage + b.storage);
  return sum;
}

Rows Tape::multiply(const Rows& a, const Rows& b) {
  save(a);
  save(b);
  return add(a, b);
}

Rows Tape::repeat(const Rows& x, int64_t copies) {
  if (copies == 1) return x;
  const Rows all = make(x.rows * copies, x.width);
  move(x.storage + all.storage);
  return all;
}

Rows Tape::recomputed(bool wanted, const std::vector<Rows>& inputs,
                      const std::function<Rows()>& body, bool ends_part) {
  if (!wanted) return body();
  for (const Rows& input : inputs)
    save(input);
  frames_.emplace_back().runs = ends_part ? 0 : 1;
  const Rows result = body();
  frames_.pop_back();
  return result;
}

Rows Tape::again(const std::function<Rows()>& body) {
  const bool before = registering_;
  registering_ = false;
  const Rows result = body();
  registering_ = before;
  return result;
}

}  // namespace aifs::plan
