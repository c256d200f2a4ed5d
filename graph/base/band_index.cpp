// SPDX-License-Identifier: Apache-2.0
#include "graph/base/band_index.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "graph/base/large_vector.h"
#include "graph/base/parallel_for.h"

namespace aifs::graph {

namespace {

constexpr double kWholeSphere2 = 4.0 + 1e-5;  // beyond all squared distances

// Distances are between rounded points, cells are of coordinates: every search reaches farther by
// this much, ten times what float32 can make of it.
constexpr double kRounding_rad = 2.5e-6;

// At least the angle that a chord spans; half the sphere for chords above 1.
double angle_of(double chord2) {
  if (chord2 > 1.0) return kPi;
  const double chord = std::sqrt(chord2);
  return chord * (1 + 0.05 * chord2);  // 2 asin(chord / 2) is below
}

// Between 0 and 2 pi, both included.
double turned(double lon_rad) {
  if (lon_rad >= 0 && lon_rad <= 2 * kPi) return lon_rad;
  const double turns = std::floor(lon_rad / (2 * kPi));
  return std::clamp(lon_rad - 2 * kPi * turns, 0.0, 2 * kPi);
}

size_t number_of(std::span<const int32_t> numbers, size_t i) {
  return numbers.empty() ? i : static_cast<size_t>(numbers[i]);
}

// The k best so far, nearest first.
void keep_nearest(std::vector<Neighbour>& found, size_t k, const Neighbour& neighbour) {
  if (found.size() == k) {
    if (!(neighbour < found.back())) return;
  } else {
    found.push_back(neighbour);
  }
  size_t place = found.size() - 1;
  for (; place > 0 && neighbour < found[place - 1]; --place)
    found[place] = found[place - 1];
  found[place] = neighbour;
}

}  // namespace

template <class Real>
BandIndex<Real>::Cells::Cells(int64_t num_points) {
  const double side = std::sqrt(4 * kPi / static_cast<double>(std::max<int64_t>(num_points, 1)));
  const auto num_bands = std::max<int64_t>(1, static_cast<int64_t>(kPi / side));
  bands_per_radian_ = static_cast<double>(num_bands) / kPi;
  int64_t first = 0;
  for (int64_t b = 0; b < num_bands; ++b) {
    const double middle = (static_cast<double>(b) + 0.5) / bands_per_radian_ - kPi / 2;
    const auto length = static_cast<int64_t>(2 * kPi * std::cos(middle) * bands_per_radian_);
    const int64_t cells = std::max<int64_t>(1, length);
    bands_.push_back({static_cast<int32_t>(first), static_cast<int32_t>(cells),
                      static_cast<double>(cells) / (2 * kPi)});
    first += cells;
  }
}

template <class Real>
int64_t BandIndex<Real>::Cells::band(double lat_rad) const {
  const auto band = static_cast<int64_t>((lat_rad + kPi / 2) * bands_per_radian_);
  return std::clamp<int64_t>(band, 0, static_cast<int64_t>(bands_.size()) - 1);
}

template <class Real>
int64_t BandIndex<Real>::Cells::cell(float lat_rad, float lon_rad) const {
  const Band& in = bands_[static_cast<size_t>(band(lat_rad))];
  const auto along = static_cast<int32_t>(turned(lon_rad) * in.cells_per_radian);
  return in.first_cell + std::min(along, in.num_cells - 1);
}

template <class Real>
template <class Visit>
void BandIndex<Real>::Cells::visit_around(double lat_rad, double lon_rad, double cos_lat,
                                          double angle, const Visit& visit) const {
  // A cap reaches asin(sin(angle) / cos(latitude)) to both sides, unless it has a pole.
  double width = kPi;
  if (std::abs(lat_rad) + angle < kPi / 2 && angle < 0.99 * cos_lat) {
    const double sine = angle / cos_lat;
    width = sine * (1 + 0.5708 * sine * sine) + kRounding_rad;  // above asin(sine)
  }
  const double west = turned(lon_rad) - width, east = west + 2 * width;
  const int64_t last = band(lat_rad + angle);
  for (int64_t b = band(lat_rad - angle); b <= last; ++b) {
    const Band& in = bands_[static_cast<size_t>(b)];
    const int32_t end = in.first_cell + in.num_cells;
    // Adding the number of cells keeps the sum positive: a cast rounds down.
    const int32_t from =
        static_cast<int32_t>(west * in.cells_per_radian + in.num_cells) - in.num_cells;
    const int32_t to =
        static_cast<int32_t>(east * in.cells_per_radian + in.num_cells) - in.num_cells;
    if (to - from + 1 >= in.num_cells) {
      visit(in.first_cell, end);
    } else if (from < 0) {
      if (to < 0) {
        visit(end + from, end + to + 1);
      } else {
        visit(end + from, end);
        visit(in.first_cell, in.first_cell + to + 1);
      }
    } else if (to >= in.num_cells) {
      if (from < in.num_cells) visit(in.first_cell + from, end);
      const int32_t begin = std::max(from - in.num_cells, 0);
      visit(in.first_cell + begin, in.first_cell + to - in.num_cells + 1);
    } else {
      visit(in.first_cell + from, in.first_cell + to + 1);
    }
  }
}

template <class Real>
BandIndex<Real>::BandIndex(std::span<const float> lat_rad, std::span<const float> lon_rad,
                           std::span<const int32_t> numbers, int64_t num_threads)
    : cells_(static_cast<int64_t>(numbers.empty() ? lat_rad.size() : numbers.size())) {
  const size_t count = numbers.empty() ? lat_rad.size() : numbers.size();
  AIFS_CHECK(count < static_cast<size_t>(std::numeric_limits<int32_t>::max()) / 2, count,
             " points are more than a 32-bit index can count");
  auto slot = large_vector<int32_t>(count);  // the cell of a point, then its place in items_
  parallel_for(static_cast<int64_t>(count), num_threads, [&](int64_t, int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      const size_t n = number_of(numbers, i);
      slot[i] = static_cast<int32_t>(cells_.cell(lat_rad[n], lon_rad[n]));
    }
  });
  begin_ = large_vector<int32_t>(static_cast<size_t>(cells_.count()) + 1);
  for (const int32_t cell : slot)
    ++begin_[static_cast<size_t>(cell)];
  int32_t sum = 0;
  for (int32_t& begin : begin_)
    begin = (sum += begin);  // ends; filling from the last point makes them begins
  for (size_t i = count; i-- > 0;)
    slot[i] = --begin_[static_cast<size_t>(slot[i])];
  items_ = large_vector<Item>(count);
  parallel_for(static_cast<int64_t>(count), num_threads, [&](int64_t, int64_t first, int64_t last) {
    UnitVectors<Real> unit_vector;
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      const size_t n = number_of(numbers, i);
      items_[static_cast<size_t>(slot[i])] = {unit_vector(lat_rad[n], lon_rad[n]),
                                              static_cast<int32_t>(n)};
    }
  });
}

template <class Real>
double BandIndex<Real>::crowding(std::span<const float> lat_rad, std::span<const float> lon_rad,
                                 std::span<const int32_t> numbers, int64_t num_threads) {
  // A part of the points tells, in cells larger by as much. One at a time of a step, as rows of a
  // grid may be a multiple of it.
  constexpr size_t kMostLooked = size_t{1} << 18;
  constexpr size_t kScatter = 2654435761;  // Knuth's multiplicative hash
  const size_t count = numbers.empty() ? lat_rad.size() : numbers.size();
  const size_t step = std::max<size_t>(1, count / kMostLooked);
  const size_t looked = count / step;
  const Cells cells(static_cast<int64_t>(looked));
  std::vector<int32_t> cell(looked);
  parallel_for(static_cast<int64_t>(looked), num_threads,
               [&](int64_t, int64_t first, int64_t last) {
                 for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
                   const size_t n = number_of(numbers, i * step + i * kScatter % step);
                   cell[i] = static_cast<int32_t>(cells.cell(lat_rad[n], lon_rad[n]));
                 }
               });
  std::vector<int64_t> points(static_cast<size_t>(cells.count()), 0);
  for (const int32_t c : cell)
    ++points[static_cast<size_t>(c)];
  double pairs = 0.0;
  for (const int64_t n : points)
    pairs += static_cast<double>(n * n);
  return looked == 0 ? 0.0 : pairs / static_cast<double>(looked);
}

template <class Real>
template <class Visit>
void BandIndex<Real>::visit_near(const SpherePlace<Real>& place, double distance2,
                                 const Visit& visit) const {
  const auto& [x, y, z] = place.point;
  const double cos_lat = std::sqrt(static_cast<double>(x) * static_cast<double>(x) +
                                   static_cast<double>(y) * static_cast<double>(y));
  const double angle = angle_of(distance2) + kRounding_rad;
  cells_.visit_around(place.lat_rad, place.lon_rad, cos_lat, angle,
                      [&](int32_t first, int32_t last) {
                        const Item* item = items_.data() + begin_[static_cast<size_t>(first)];
                        const Item* end = items_.data() + begin_[static_cast<size_t>(last)];
                        for (; item != end; ++item)
                          visit(squared_distance(place.point, item->point), item->number);
                      });
}

template <class Real>
void BandIndex<Real>::nearest(const SpherePlace<Real>& place, int64_t k, SearchReach& reach,
                              std::vector<Neighbour>& found) const {
  found.clear();
  if (items_.empty() || k <= 0) return;
  const auto wanted = static_cast<size_t>(std::min(k, num_points()));
  // Even points have k in a cap of this chord.
  if (reach.distance2 == 0.0)
    reach.distance2 = 4.0 * static_cast<double>(wanted + 1) / static_cast<double>(num_points());
  for (double tried = reach.distance2;; tried *= 2) {
    tried = std::min(tried, kWholeSphere2);
    double limit = tried;
    visit_near(place, tried, [&](double distance2, int32_t number) {
      if (distance2 > limit) return;
      keep_nearest(found, wanted, {distance2, number});
      if (found.size() == wanted) limit = found.back().distance2;
    });
    if (found.size() == wanted) break;
    found.clear();
  }
  reach.distance2 = std::max({1.05 * found.back().distance2, 0.97 * reach.distance2, 1e-13});
}

template <class Real>
void BandIndex<Real>::within(const SpherePlace<Real>& place, double distance2,
                             std::vector<Neighbour>& found) const {
  found.clear();
  visit_near(place, std::min(distance2, kWholeSphere2), [&](double apart2, int32_t number) {
    if (apart2 <= distance2) found.push_back({apart2, number});
  });
}

template class BandIndex<float>;
template class BandIndex<double>;

}  // namespace aifs::graph
