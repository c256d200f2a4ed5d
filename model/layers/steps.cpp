// SPDX-License-Identifier: Apache-2.0
#include "model/layers/steps.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "model/base/parameter_unit.h"

namespace aifs::model {

TensorList maybe_recomputed(bool wanted, const Piece& piece, const TensorList& inputs,
                            const StateChange& change) {
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
  return recompute(with_all, defined, change);
}

at::Tensor repeat_rows(const at::Tensor& rows, int64_t copies) {
  return copies == 1 ? rows : rows.repeat({copies, 1});
}

void LayerUnits::end_layer() {
  units_.push_back(set_->add_unit(first_));
  first_ = set_->entries().size();
}

TensorList LayerUnits::run(const std::vector<Step>& steps, const StepsOptions& options,
                           TensorList state, size_t num_changing) const {
  const Stages& stages = set_->stages();
  std::vector<Step> own;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!stages.is_here(stages.of_layer(first_layer_ + static_cast<int64_t>(i)))) continue;
    own.push_back([set = set_, unit = units_[i], step = steps[i]](const TensorList& in) {
      return in_unit(*set, unit, step, in);
    });
  }
  const auto rest = state.begin() + static_cast<std::ptrdiff_t>(num_changing);
  const TensorList next = run_steps(own, options, TensorList(state.begin(), rest),
                                    TensorList(rest, state.end()), &set_->stash());
  std::copy(next.begin(), next.end(), state.begin());
  return state;
}

StepGroups step_groups(int64_t num_steps, const StepsOptions& options) {
  const bool grouped = options.policy == RecomputePolicy::kFull;
  const int64_t wanted = grouped ? options.groups : std::max<int64_t>(1, num_steps);
  const int64_t size = std::max<int64_t>(1, (num_steps + wanted - 1) / wanted);
  const int64_t count = (num_steps + size - 1) / size;
  return {size, count, std::clamp<int64_t>(options.offload, 0, std::max<int64_t>(0, count - 1))};
}

TensorList run_steps(const std::vector<Step>& steps, const StepsOptions& options,
                     const TensorList& start, const TensorList& context, HostStash* stash) {
  const auto count = static_cast<int64_t>(steps.size());
  const auto [size, groups, offload] = step_groups(count, options);
  TensorList state = start;
  StateChange change{.width = state.size()};
  if (offload > 0) {
    change.stash = stash;
    change.num_here = static_cast<size_t>(groups - offload);
  }
  for (int64_t first = 0; first < count; first += size) {
    const std::vector<Step> group(steps.begin() + first,
                                  steps.begin() + std::min(first + size, count));
    const Piece piece = [group, width = state.size()](const TensorList& in) {
      TensorList now = in;
      for (size_t i = 0; i < group.size(); ++i) {
        const ResultsRead scope(i + 1 < group.size() || !results_unread());
        const TensorList next = group[i](now);
        std::copy(next.begin(), next.end(), now.begin());
      }
      now.resize(width);
      return now;
    };
    TensorList in = state;
    in.insert(in.end(), context.begin(), context.end());
    change.stays = first / size >= offload;
    state = maybe_recomputed(runs_layers_again(options.policy), piece, in, change);
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
  const TensorList targets = split_targets(target_rows, chunks);
  const TensorList edges = split_edges(edge_rows, chunks);
  TensorList parts;
  for (size_t i = 0; i < chunks.size(); ++i) {
    TensorList in{targets[i], edges[i]};
    in.insert(in.end(), shared.begin(), shared.end());
    parts.push_back(maybe_recomputed(recompute, body(chunks[i].index), in)[0]);
  }
  return at::cat(parts);
}

}  // namespace aifs::model
