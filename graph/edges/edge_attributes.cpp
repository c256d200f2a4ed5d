// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/edge_attributes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "graph/base/large_vector.h"
#include "graph/base/parallel_for.h"
#include "graph/edges/short_edges.h"

namespace aifs::graph {

namespace {

// Sines and cosines of nodes, kept for the edges that follow: targets come in a row, and sources
// are near each other.
class NodeAngles {
 public:
  struct Angles {
    int32_t node = -1;
    double lat, lon, sin_lat, cos_lat, sin_lon, cos_lon;
  };

  NodeAngles(const NodeSet& nodes, bool longitudes) : nodes_(nodes), longitudes_(longitudes) {}

  const Angles& of(int32_t node) {
    Angles& kept = kept_[static_cast<size_t>(node) % kept_.size()];
    if (kept.node != node) fill(kept, node);
    return kept;
  }

 private:
  void fill(Angles& kept, int32_t node) const {
    const auto n = static_cast<size_t>(node);
    kept.node = node;
    kept.lat = nodes_.lat_rad[n];
    kept.lon = nodes_.lon_rad[n];
    kept.sin_lat = std::sin(kept.lat);
    kept.cos_lat = std::cos(kept.lat);
    if (!longitudes_) return;
    kept.sin_lon = std::sin(kept.lon);
    kept.cos_lon = std::cos(kept.lon);
  }

  const NodeSet& nodes_;
  bool longitudes_;
  std::array<Angles, 256> kept_;
};

// The ends of some edges that follow each other.
class EndAngles {
 public:
  explicit EndAngles(const EdgeEnds& ends)
      : ends_(ends), source_(ends.source, false), target_(ends.target, true) {}

  EdgeAngles of(size_t edge) {
    const auto& s = source_.of(ends_.source_index[edge]);
    const auto& t = target_.of(ends_.target_index[edge]);
    return {s.lat, s.lon,     s.sin_lat, s.cos_lat, t.lat,
            t.lon, t.sin_lat, t.cos_lat, t.sin_lon, t.cos_lon};
  }

 private:
  const EdgeEnds& ends_;
  NodeAngles source_, target_;
};

// Components of the unit vector to the source in the horizontal plane of the target.
struct Horizontal {
  double east, north;
};

Horizontal horizontal(const EdgeAngles& a) {
  const double dlon = a.source_lon - a.target_lon;
  return {
      a.cos_source_lat * std::sin(dlon),
      a.cos_target_lat * a.sin_source_lat - a.sin_target_lat * a.cos_source_lat * std::cos(dlon)};
}

// The rotation of the target to the pole turns its horizontal plane by its longitude.
template <class Real>
std::array<Real, 2> direction(const EdgeAngles& a) {
  if constexpr (std::is_same_v<Real, float>) {
    if (const auto quick = short_edge_direction(a)) return *quick;
  }
  const auto [east, north] = horizontal(a);
  const double x = -north * a.cos_target_lon - east * a.sin_target_lon;
  const double y = -north * a.sin_target_lon + east * a.cos_target_lon;
  const double length = std::max(std::hypot(x, y), 1e-8);
  return {static_cast<Real>(x / length), static_cast<Real>(y / length)};
}

template <class Real>
Real length(const EdgeAngles& a) {
  if constexpr (std::is_same_v<Real, float>) {
    if (const auto quick = short_edge_length(a)) return *quick;
  }
  return static_cast<Real>(
      great_circle_angle(a.source_lat, a.source_lon, a.target_lat, a.target_lon));
}

// Fills rows of `width` values: row(edge, angles of its ends, values).
template <class Real, class Row>
std::vector<Real> rows_of(const EdgeEnds& ends, size_t width, const Row& row) {
  auto values = large_vector<Real>(ends.num_edges() * width);
  parallel_for(static_cast<int64_t>(ends.num_edges()), ends.num_threads,
               [&](int64_t, int64_t begin, int64_t end) {
                 EndAngles angles(ends);
                 for (auto e = static_cast<size_t>(begin); e < static_cast<size_t>(end); ++e)
                   row(e, angles.of(e), values.data() + e * width);
               });
  return values;
}

void check(const RadialBasis& basis, double scale) {
  if (!(basis.sigma > 0)) throw Error(concat("sigma must be positive, got ", basis.sigma));
  if (basis.centers.empty()) throw Error("radial basis features need at least one centre");
  for (const double center : basis.centers) {
    const double scaled = center / scale;
    if (!(scaled >= 0 && scaled <= 1)) {
      throw Error(concat("the centre ", center, " is not between 0 and ", scale));
    }
  }
}

}  // namespace

template <class Real>
std::vector<Real> edge_length(const EdgeEnds& ends) {
  return rows_of<Real>(
      ends, 1, [&](size_t, const EdgeAngles& angles, Real* row) { row[0] = length<Real>(angles); });
}

template <class Real>
std::vector<Real> edge_direction(const EdgeEnds& ends) {
  return rows_of<Real>(ends, 2, [&](size_t, const EdgeAngles& angles, Real* row) {
    const auto [x, y] = direction<Real>(angles);
    row[0] = x;
    row[1] = y;
  });
}

template <class Real>
std::vector<Real> edge_azimuth(const EdgeEnds& ends) {
  return rows_of<Real>(ends, 1, [&](size_t, const EdgeAngles& angles, Real* row) {
    const auto [east, north] = horizontal(angles);
    row[0] = static_cast<Real>(std::atan2(east, north));
  });
}

template <class Real>
std::vector<Real> directional_harmonics(const EdgeEnds& ends, int64_t order) {
  if (order < 1) throw Error(concat("the order of harmonics must be positive, got ", order));
  const auto width = 2 * static_cast<size_t>(order);
  return rows_of<Real>(ends, width, [&](size_t, const EdgeAngles& angles, Real* row) {
    const auto [x, y] = direction<double>(angles);
    const double angle = std::atan2(y, x);
    for (int64_t m = 1; m <= order; ++m) {
      *row++ = static_cast<Real>(std::sin(static_cast<double>(m) * angle));
      *row++ = static_cast<Real>(std::cos(static_cast<double>(m) * angle));
    }
  });
}

template <class Real>
std::vector<Real> radial_basis(const EdgeEnds& ends, const RadialBasis& basis) {
  const double scale = basis.scale ? std::max(*basis.scale, basis.epsilon) : 1.0;
  check(basis, scale);
  const std::vector<double> lengths = edge_length<double>(ends);
  std::vector<double> divisor(ends.target.lat_rad.size(), basis.scale ? scale : basis.epsilon);
  if (!basis.scale) {
    for (size_t e = 0; e < lengths.size(); ++e) {
      double& longest = divisor[static_cast<size_t>(ends.target_index[e])];
      longest = std::max(longest, lengths[e]);
    }
  }
  return rows_of<Real>(ends, basis.centers.size(), [&](size_t e, const EdgeAngles&, Real* row) {
    const double position = lengths[e] / divisor[static_cast<size_t>(ends.target_index[e])];
    for (const double center : basis.centers) {
      const double offset = (position - center / scale) / basis.sigma;
      *row++ = static_cast<Real>(std::exp(-offset * offset));
    }
  });
}

template <class Real>
std::vector<Real> gaussian_distance_weights(const EdgeEnds& ends, double sigma) {
  if (!(sigma > 0)) throw Error(concat("sigma must be positive, got ", sigma));
  return rows_of<Real>(ends, 1, [&](size_t, const EdgeAngles& angles, Real* row) {
    const double scaled = length<double>(angles) / sigma;
    row[0] = static_cast<Real>(std::exp(-scaled * scaled / 2));
  });
}

Attribute attribute_of_ends(const Attribute& node_attribute, std::span<const int32_t> node_index) {
  Attribute attribute{node_attribute.width, {}};
  attribute.values.reserve(node_index.size() * static_cast<size_t>(attribute.width));
  for (const int32_t node : node_index) {
    const auto row = node_attribute.values.begin() + node * node_attribute.width;
    attribute.values.insert(attribute.values.end(), row, row + node_attribute.width);
  }
  return attribute;
}

template std::vector<float> edge_length(const EdgeEnds&);
template std::vector<float> edge_direction(const EdgeEnds&);
template std::vector<float> edge_azimuth(const EdgeEnds&);
template std::vector<float> directional_harmonics(const EdgeEnds&, int64_t);
template std::vector<float> radial_basis(const EdgeEnds&, const RadialBasis&);
template std::vector<float> gaussian_distance_weights(const EdgeEnds&, double);
template std::vector<double> edge_length(const EdgeEnds&);
template std::vector<double> edge_direction(const EdgeEnds&);
template std::vector<double> edge_azimuth(const EdgeEnds&);
template std::vector<double> directional_harmonics(const EdgeEnds&, int64_t);
template std::vector<double> radial_basis(const EdgeEnds&, const RadialBasis&);
template std::vector<double> gaussian_distance_weights(const EdgeEnds&, double);

}  // namespace aifs::graph
