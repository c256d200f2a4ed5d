// SPDX-License-Identifier: Apache-2.0
#include "model/layers/steps.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "model/parameter_unit.h"

namespace aifs::model {

TensorList maybe_recomputed(bool wanted, const Piece& piece, const TensorList& inputs) {
  if (!wanted) return piece(inputs);
  // Undefined tensors cannot be remembered; they are put back in their places.
  TensorList defined;
  std::vector<size_t> places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    defined.push_back(inputs[i]);
    places.push_back(i);
  }
  const Piece with_all = [piece, places, count = inputs.size()](const TensorList& given) {
    TensorList all(count);
    for (size_t k = 0; k < places.size(); ++k)
      all[places[k]] = given[k];
    return piece(all);
  };
  return recompute(with_all, defined);
}

at::Tensor repeat_rows(const at::Tensor& rows, int64_t copies) {
  return copies == 1 ? rows : rows.repeat({copies, 1});
}

void LayerUnits::end_layer() {
  units_.push_back(set_->add_unit(first_));
  first_ = set_->entries().size();
}

std::vector<Step> LayerUnits::own_steps(const std::vector<Step>& steps) const {
  const Stages& stages = set_->stages();
  std::vector<Step> own;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!stages.is_here(stages.of_layer(static_cast<int64_t>(i)))) continue;
    own.push_back([set = set_, unit = units_[i], step = steps[i]](const TensorList& in) {
      return in_unit(*set, unit, step, in);
    });
  }
  return own;
}

TensorList run_steps(const std::vector<Step>& steps, RecomputePolicy policy, int64_t groups,
                     const TensorList& start, const TensorList& context) {
  const auto count = static_cast<int64_t>(steps.size());
  const bool grouped = policy == RecomputePolicy::kFull;
  const int64_t size = grouped ? (count + groups - 1) / groups : 1;
  TensorList state = start;
  for (int64_t first = 0; first < count; first += size) {
    const std::vector<Step> group(steps.begin() + first,
                                  steps.begin() + std::min(first + size, count));
    const Piece piece = [group, width = state.size()](const TensorList& in) {
      TensorList now = in;
      for (const Step& step : group) {
        const TensorList next = step(now);
        std::copy(next.begin(), next.end(), now.begin());
      }
      now.resize(width);
      return now;
    };
    TensorList in = state;
    in.insert(in.end(), context.begin(), context.end());
    state = maybe_recomputed(grouped || policy == RecomputePolicy::kBlock, piece, in);
  }
  return state;
}

at::Tensor over_chunks(const std::vector<EdgeChunk>& chunks,
                       const std::function<Piece(const EdgeIndexPtr&)>& body, bool recompute,
                       const at::Tensor& target_rows, const at::Tensor& edge_rows,
                       const TensorList& shared) {
  if (chunks.size() == 1) {
    TensorList in{target_rows, edge_rows};
    in.insert(in.end(), shared.begin(), shared.end());
    return maybe_recomputed(recompute, body(chunks[0].index), in)[0];
  }
  // Split, not narrowed: the gradient of all parts is one concatenation.
  std::vector<int64_t> num_targets, num_edges;
  for (const EdgeChunk& chunk : chunks) {
    num_targets.push_back(chunk.num_targets);
    num_edges.push_back(chunk.num_edges);
  }
  const TensorList targets = target_rows.split_with_sizes(num_targets);
  const TensorList edges = edge_rows.split_with_sizes(num_edges);
  TensorList parts;
  for (size_t i = 0; i < chunks.size(); ++i) {
    TensorList in{targets[i], edges[i]};
    in.insert(in.end(), shared.begin(), shared.end());
    parts.push_back(maybe_recomputed(recompute, body(chunks[i].index), in)[0]);
  }
  return at::cat(parts);
}

}  // namespace aifs::model
