// SPDX-License-Identifier: Apache-2.0
#include "graph/base/sphere_search.h"

#include <algorithm>

namespace aifs::graph {

namespace {

// Regular grids, whose rows near the poles crowd, have 3 to 4.
constexpr double kMostCrowding = 6.0;

// Unit vectors of these points among all.
template <class Real>
std::vector<Point<Real>> chosen_vectors(std::span<const float> lat_rad,
                                        std::span<const float> lon_rad,
                                        std::span<const int32_t> numbers, int64_t num_threads) {
  if (numbers.empty()) return unit_vectors<Real>(lat_rad, lon_rad, num_threads);
  std::vector<Point<Real>> points;
  points.reserve(numbers.size());
  UnitVectors<Real> unit_vector;
  for (const int32_t number : numbers) {
    const auto n = static_cast<size_t>(number);
    points.push_back(unit_vector(lat_rad[n], lon_rad[n]));
  }
  return points;
}

}  // namespace

template <class Real>
SphereSearch<Real>::SphereSearch(std::span<const float> lat_rad, std::span<const float> lon_rad,
                                 std::span<const int32_t> numbers, int64_t num_threads) {
  if (BandIndex<Real>::crowding(lat_rad, lon_rad, numbers, num_threads) <= kMostCrowding) {
    bands_.emplace(lat_rad, lon_rad, numbers, num_threads);
  } else {
    tree_.emplace(chosen_vectors<Real>(lat_rad, lon_rad, numbers, num_threads), num_threads);
    numbers_.assign(numbers.begin(), numbers.end());
  }
}

template <class Real>
void SphereSearch<Real>::rename(std::vector<Neighbour>& found) const {
  if (numbers_.empty()) return;
  for (Neighbour& neighbour : found)
    neighbour.index = numbers_[static_cast<size_t>(neighbour.index)];
}

template <class Real>
void SphereSearch<Real>::nearest(const SpherePlace<Real>& place, int64_t k, SearchReach& reach,
                                 std::vector<Neighbour>& found) const {
  if (bands_) return bands_->nearest(place, k, reach, found);
  tree_->nearest(place.point, k, found);
  rename(found);
}

template <class Real>
void SphereSearch<Real>::within(const SpherePlace<Real>& place, double distance2,
                                std::vector<Neighbour>& found) const {
  if (bands_) {
    bands_->within(place, distance2, found);
  } else {
    tree_->within(place.point, distance2, found);
    rename(found);
  }
  std::sort(found.begin(), found.end());
}

template class SphereSearch<float>;
template class SphereSearch<double>;

}  // namespace aifs::graph
