// SPDX-License-Identifier: Apache-2.0
// The icosahedron, refined by halving its edges. Vertices are nested: those of level r are the
// first 10 * 4^r + 2 of every finer level. Numbering, order of faces and rounding are those of
// trimesh as Anemoi uses it, so that coordinates agree to the last bit of float32.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/base/geometry.h"

namespace aifs::graph {

// Level 11 has 42 million vertices; 84 million faces still fit 32-bit indices.
constexpr int64_t kMaxRefinement = 11;

constexpr int64_t icosphere_vertices(int64_t level) {
  return 10 * (int64_t{1} << (2 * level)) + 2;
}
constexpr int64_t icosphere_faces(int64_t level) {
  return 20 * (int64_t{1} << (2 * level));
}

// Faces of one level, vertices counter-clockwise seen from outside: each undirected edge is passed
// once in each direction.
using Faces = std::vector<std::array<int32_t, 3>>;

Faces icosahedron_faces();
// The next level: face f becomes 4f ... 4f + 3. `num_vertices` is that of the level of `faces`.
Faces refine_faces(const Faces& faces, int64_t num_vertices);

// Vertices of a level on the unit sphere, in mesh numbering.
std::vector<Point<double>> icosphere_points(int64_t level);

// Latitude and longitude of mesh vertices: double arithmetic, rounded to float32; longitudes in
// (-pi, pi].
void icosphere_coordinates(const std::vector<Point<double>>& points, std::vector<float>& lat_rad,
                           std::vector<float>& lon_rad);

// The order of nodes made of mesh vertices: latitude descending, then longitude descending, both as
// float32. Returns the mesh vertex of each node. (Anemoi leaves the order within equal latitudes to
// an unstable sort; this is what a stable one gives.)
std::vector<int32_t> canonical_order(const std::vector<float>& lat_rad,
                                     const std::vector<float>& lon_rad);

}  // namespace aifs::graph
