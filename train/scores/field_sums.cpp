// SPDX-License-Identifier: Apache-2.0
#include "train/scores/field_sums.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace aifs::train {

namespace {

// Mean over the members of the variance over the cells, (D, rows, V), from sums over all cells of
// weights (D, rows, 1, V), values (D, rows, E, V), and squares (D, rows, 1, V; mean over members).
at::Tensor variance(const at::Tensor& weight, const at::Tensor& sum, const at::Tensor& squares) {
  const at::Tensor total = weight.squeeze(2);
  const at::Tensor found = squares.squeeze(2) / total - (sum / weight).square().mean(2);
  return at::where(total > 0, found.clamp_min(0.0), 0.0);  // a variable that no cell has truth of
}

}  // namespace

FieldSums::FieldSums(int64_t rows, int64_t num_outputs, at::Device device) {
  for (at::Tensor* sum : {&squared, &persistence_squared, &error, &absolute})
    *sum = at::zeros({rows, num_outputs}, at::TensorOptions(at::kDouble).device(device));
}

void FieldSums::add_date(const ScoredFields& fields, const std::vector<at::Tensor>& weights) {
  // (1, E, n, V) -> (rows, V): weighted sum over cells, mean over members.
  const auto means = [&](const at::Tensor& values) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& weight : weights)
      all.push_back((values * weight).sum(-2).mean(1).sum(0));
    return at::stack(all);
  };
  const auto difference = [&](const at::Tensor& field) {
    at::Tensor values = field - fields.truth;
    if (fields.valid.defined()) values = values.masked_fill(fields.valid == 0, 0.0);
    return values.to(at::kDouble);
  };
  persistence_squared += means(difference(fields.persistence).square());
  const at::Tensor errors = difference(fields.forecast);
  squared += means(errors.square());
  error += means(errors);
  absolute += means(errors.abs());
  // Of each row (members, V), in turn: the weights, of forecast and truth values and squares, the
  // latter means over the members.
  std::vector<std::vector<at::Tensor>> rows;
  for (const at::Tensor& weight : weights) {
    const at::Tensor counted = fields.valid.defined() ? weight * (fields.valid[0][0] != 0)
                                                      : weight.expand({-1, fields.truth.size(-1)});
    rows.push_back({counted.sum(0, /*keepdim=*/true)});
  }
  for (const at::Tensor* field : {&fields.forecast, &fields.truth}) {
    at::Tensor values = field->select(0, 0).to(at::kDouble);  // 0 where there is no truth
    if (fields.valid.defined()) values = values.masked_fill(fields.valid[0] == 0, 0.0);
    const at::Tensor squares = values.square();
    for (size_t r = 0; r < weights.size(); ++r) {
      rows[r].push_back((values * weights[r]).sum(1));
      rows[r].push_back((squares * weights[r]).sum(1).mean(0, /*keepdim=*/true));
    }
  }
  std::vector<at::Tensor> moments;
  for (const std::vector<at::Tensor>& sums : rows)
    moments.push_back(at::cat(sums));
  num_members_ = fields.forecast.size(1);
  moments_.push_back(at::stack(moments));
}

void FieldSums::add(const FieldSums& other) {
  squared += other.squared;
  persistence_squared += other.persistence_squared;
  error += other.error;
  absolute += other.absolute;
  if (!other.moments_.empty()) num_members_ = other.num_members_;
  moments_.insert(moments_.end(), other.moments_.begin(), other.moments_.end());
}

bool FieldSums::are_below(double most) const {
  const auto is_below = [&](const at::Tensor& sum) {
    return at::all(at::lt(sum, most)).item<bool>();  // false of NaN
  };
  return is_below(squared) && is_below(persistence_squared);
}

void FieldSums::sum_over_ranks(const parallel::ProcessMesh& mesh) {
  using parallel::Communicator;
  const auto sum = [&](at::Tensor& values, const std::vector<Communicator*>& groups) {
    values = values.cpu();
    for (Communicator* group : groups)
      group->all_reduce(values, parallel::Reduction::kSum);
  };
  activity = at::zeros_like(squared).cpu();
  truth_activity = at::zeros_like(squared).cpu();
  if (!moments_.empty()) {  // as many on all ranks of a model group
    at::Tensor all = at::stack(moments_);
    sum(all, {&mesh.model()});
    const auto part = [&](int64_t first, int64_t count) { return all.narrow(2, first, count); };
    const int64_t e = num_members_;
    activity = variance(part(0, 1), part(1, e), part(1 + e, 1)).sum(0);
    truth_activity =
        variance(part(0, 1), part(2 + e, all.size(2) - e - 3), part(all.size(2) - 1, 1)).sum(0);
  }
  for (at::Tensor* values : {&squared, &persistence_squared, &error, &absolute})
    sum(*values, {&mesh.model(), &mesh.data(), &mesh.pipeline()});
  for (at::Tensor* values : {&activity, &truth_activity})
    sum(*values, {&mesh.data(), &mesh.pipeline()});
}

}  // namespace aifs::train
