// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/edge_attributes.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "graph/base/parallel_for.h"

namespace aifs::graph {

namespace {

struct EdgeCoordinates {
  double source_lat, source_lon, target_lat, target_lon;
};

EdgeCoordinates coordinates(const EdgeEnds& ends, size_t edge) {
  const auto s = static_cast<size_t>(ends.source_index[edge]);
  const auto t = static_cast<size_t>(ends.target_index[edge]);
  return {ends.source.lat_rad[s], ends.source.lon_rad[s], ends.target.lat_rad[t],
          ends.target.lon_rad[t]};
}

// Components of the unit vector to the source in the horizontal plane of the target.
struct Horizontal {
  double east, north;
};

Horizontal horizontal(const EdgeCoordinates& c) {
  const double cos_source = std::cos(c.source_lat), dlon = c.source_lon - c.target_lon;
  return {cos_source * std::sin(dlon), std::cos(c.target_lat) * std::sin(c.source_lat) -
                                           std::sin(c.target_lat) * cos_source * std::cos(dlon)};
}

// The rotation of the target to the pole turns its horizontal plane by its longitude.
std::array<double, 2> direction(const EdgeCoordinates& c) {
  const auto [east, north] = horizontal(c);
  const double sin_lon = std::sin(c.target_lon), cos_lon = std::cos(c.target_lon);
  const double x = -north * cos_lon - east * sin_lon;
  const double y = -north * sin_lon + east * cos_lon;
  const double length = std::max(std::hypot(x, y), 1e-8);
  return {x / length, y / length};
}

double length(const EdgeCoordinates& c) {
  return great_circle_angle(c.source_lat, c.source_lon, c.target_lat, c.target_lon);
}

// Fills rows of `width` values: row(edge, values).
template <class Real, class Row>
std::vector<Real> rows_of(const EdgeEnds& ends, size_t width, const Row& row) {
  std::vector<Real> values(ends.num_edges() * width);
  parallel_for(static_cast<int64_t>(ends.num_edges()), ends.num_threads,
               [&](int64_t, int64_t begin, int64_t end) {
                 for (auto e = static_cast<size_t>(begin); e < static_cast<size_t>(end); ++e)
                   row(e, values.data() + e * width);
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
  return rows_of<Real>(ends, 1, [&](size_t e, Real* row) {
    row[0] = static_cast<Real>(length(coordinates(ends, e)));
  });
}

template <class Real>
std::vector<Real> edge_direction(const EdgeEnds& ends) {
  return rows_of<Real>(ends, 2, [&](size_t e, Real* row) {
    const auto [x, y] = direction(coordinates(ends, e));
    row[0] = static_cast<Real>(x);
    row[1] = static_cast<Real>(y);
  });
}

template <class Real>
std::vector<Real> edge_azimuth(const EdgeEnds& ends) {
  return rows_of<Real>(ends, 1, [&](size_t e, Real* row) {
    const auto [east, north] = horizontal(coordinates(ends, e));
    row[0] = static_cast<Real>(std::atan2(east, north));
  });
}

template <class Real>
std::vector<Real> directional_harmonics(const EdgeEnds& ends, int64_t order) {
  if (order < 1) throw Error(concat("the order of harmonics must be positive, got ", order));
  return rows_of<Real>(ends, 2 * static_cast<size_t>(order), [&](size_t e, Real* row) {
    const auto [x, y] = direction(coordinates(ends, e));
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
  return rows_of<Real>(ends, basis.centers.size(), [&](size_t e, Real* row) {
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
  return rows_of<Real>(ends, 1, [&](size_t e, Real* row) {
    const double scaled = length(coordinates(ends, e)) / sigma;
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
