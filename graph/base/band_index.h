// SPDX-License-Identifier: Apache-2.0
// Neighbour searches among points that are spread evenly over the sphere, as those of Gaussian
// grids and icosahedral meshes: bands of latitude, cut into cells about as long as the bands are
// high. Points of neighbouring cells of a band lie side by side in memory, so a search looks at a
// few short runs, and building is a counting sort. Answers are those of KdTree to the last bit:
// squared distances of the same rounded points, equal ones ordered by number.
//
// Where points crowd in few cells (a limited area, a stretched grid) searches get slow: see
// crowding() and sphere_search.h, which chooses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/geometry.h"
#include "graph/base/kd_tree.h"

namespace aifs::graph {

// A place to search around.
template <class Real>
struct SpherePlace {
  float lat_rad, lon_rad;
  Point<Real> point;  // unit_vector() of them
};

// How far the searches before have reached: the first guess of the next one. Answers do not depend
// on it. One per thread.
struct SearchReach {
  double distance2 = 0.0;
};

template <class Real>
class BandIndex {
 public:
  // Points by number in lat_rad and lon_rad; with `numbers` only those (ascending).
  BandIndex(std::span<const float> lat_rad, std::span<const float> lon_rad,
            std::span<const int32_t> numbers, int64_t num_threads);

  // Points in the cell of a point, on average: 1 to 2 for even points. Costs of a search grow
  // with it. Found without building.
  static double crowding(std::span<const float> lat_rad, std::span<const float> lon_rad,
                         std::span<const int32_t> numbers, int64_t num_threads);

  int64_t num_points() const { return static_cast<int64_t>(items_.size()); }

  // The k nearest points (fewer if there are fewer), nearest first.
  void nearest(const SpherePlace<Real>& place, int64_t k, SearchReach& reach,
               std::vector<Neighbour>& found) const;
  // All points with squared distance <= distance2, in any order.
  void within(const SpherePlace<Real>& place, double distance2,
              std::vector<Neighbour>& found) const;

 private:
  struct Item {
    Point<Real> point;
    int32_t number;
  };

  // Cells are numbered along the bands, from south to north.
  class Cells {
   public:
    explicit Cells(int64_t num_points);
    int64_t count() const { return bands_.back().first_cell + bands_.back().num_cells; }
    int64_t cell(float lat_rad, float lon_rad) const;
    // Calls visit(first, last) for runs of cells that have all places at most `angle` away.
    template <class Visit>
    void visit_around(double lat_rad, double lon_rad, double cos_lat, double angle,
                      const Visit& visit) const;

   private:
    struct Band {
      int32_t first_cell, num_cells;
      double cells_per_radian;
    };
    int64_t band(double lat_rad) const;
    std::vector<Band> bands_;
    double bands_per_radian_ = 0.0;
  };

  template <class Visit>  // visit(squared distance, number)
  void visit_near(const SpherePlace<Real>& place, double distance2, const Visit& visit) const;

  Cells cells_;
  std::vector<int32_t> begin_;  // of each cell in items_
  std::vector<Item> items_;
};

extern template class BandIndex<float>;
extern template class BandIndex<double>;

}  // namespace aifs::graph
