// SPDX-License-Identifier: Apache-2.0
// Neighbour searches among points on the sphere, by the way that is fast for them: bands of cells
// for even points, a k-d tree for those that crowd. Both give the same answers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/base/band_index.h"
#include "graph/base/kd_tree.h"

namespace aifs::graph {

template <class Real>
class SphereSearch {
 public:
  // With `numbers` (ascending) only those points take part; found ones are named by their numbers
  // among all. The coordinates are not kept.
  SphereSearch(std::span<const float> lat_rad, std::span<const float> lon_rad,
               std::span<const int32_t> numbers, int64_t num_threads);

  int64_t num_points() const { return bands_ ? bands_->num_points() : tree_->num_points(); }

  // The k nearest points (fewer if there are fewer), nearest first.
  void nearest(const SpherePlace<Real>& place, int64_t k, SearchReach& reach,
               std::vector<Neighbour>& found) const;
  // All points with squared distance <= distance2, nearest first.
  void within(const SpherePlace<Real>& place, double distance2,
              std::vector<Neighbour>& found) const;
  // Which of the two it is; the other one is null.
  const BandIndex<Real>* bands() const { return bands_ ? &*bands_ : nullptr; }
  const KdTree<Real>* tree() const { return tree_ ? &*tree_ : nullptr; }

 private:
  void rename(std::vector<Neighbour>& found) const;

  std::optional<BandIndex<Real>> bands_;
  std::optional<KdTree<Real>> tree_;
  std::vector<int32_t> numbers_;  // of the points in the tree; empty: their own
};

extern template class SphereSearch<float>;
extern template class SphereSearch<double>;

}  // namespace aifs::graph
