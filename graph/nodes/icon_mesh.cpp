// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/icon_mesh.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "graph/base/netcdf_arrays.h"

namespace aifs::graph {

namespace {

using Pair = std::array<int32_t, 2>;
using Triangle = std::array<int32_t, 3>;

std::vector<int32_t> up_to(const std::vector<int32_t>& levels, int64_t level) {
  std::vector<int32_t> kept;
  for (size_t i = 0; i < levels.size(); ++i)
    if (levels[i] <= level) kept.push_back(static_cast<int32_t>(i));
  return kept;
}

// The place of each number in a list of kept ones, -1 for the others.
std::vector<int32_t> places(const std::vector<int32_t>& kept, size_t count) {
  std::vector<int32_t> place(count, -1);
  for (size_t i = 0; i < kept.size(); ++i)
    place[static_cast<size_t>(kept[i])] = static_cast<int32_t>(i);
  return place;
}

// The two ends of the edge that each vertex of a level halves; {-1, -1} where not exactly two
// neighbours are of coarser levels.
std::vector<Pair> parents_of(const IconMesh& mesh, const std::vector<Pair>& edges, int64_t level) {
  std::vector<Pair> parents(mesh.vertex_level.size(), {-1, -1});
  std::vector<int32_t> count(parents.size(), 0);
  const auto add = [&](int32_t fine, int32_t other) {
    const auto f = static_cast<size_t>(fine);
    if (mesh.vertex_level[f] != level || mesh.vertex_level[static_cast<size_t>(other)] >= level)
      return;
    if (count[f] < 2) parents[f][static_cast<size_t>(count[f])] = other;
    ++count[f];
  };
  for (const auto& [a, b] : edges) {
    add(a, b);
    add(b, a);
  }
  for (size_t v = 0; v < parents.size(); ++v) {
    if (count[v] != 2) parents[v] = {-1, -1};
    if (parents[v][0] > parents[v][1]) std::swap(parents[v][0], parents[v][1]);
  }
  return parents;
}

// The edges that those of a level halve, sorted.
std::vector<Pair> coarsened(const IconMesh& mesh, const std::vector<Pair>& edges,
                            const std::vector<Pair>& parents, int64_t level) {
  std::vector<Pair> coarse;
  for (const auto& [a, b] : edges) {
    const bool a_new = mesh.vertex_level[static_cast<size_t>(a)] == level;
    const bool b_new = mesh.vertex_level[static_cast<size_t>(b)] == level;
    if (a_new == b_new) continue;
    const Pair& pair = parents[static_cast<size_t>(a_new ? a : b)];
    if (pair[0] >= 0) coarse.push_back(pair);
  }
  std::sort(coarse.begin(), coarse.end());
  coarse.erase(std::unique(coarse.begin(), coarse.end()), coarse.end());
  return coarse;
}

// The triangle of the next coarser level that each one lies in.
void coarsen(std::vector<std::optional<Triangle>>& cells, const std::vector<Pair>& parents) {
  for (auto& cell : cells) {
    if (!cell) continue;
    std::vector<int32_t> corners;
    for (const int32_t vertex : *cell) {
      const Pair& pair = parents[static_cast<size_t>(vertex)];
      if (pair[0] >= 0) corners.insert(corners.end(), pair.begin(), pair.end());
    }
    std::sort(corners.begin(), corners.end());
    corners.erase(std::unique(corners.begin(), corners.end()), corners.end());
    cell.reset();
    if (corners.size() == 3) cell = Triangle{corners[0], corners[1], corners[2]};
  }
}

template <size_t Width>
std::vector<std::array<int32_t, Width>> read_indices(const NetcdfArrays& file, const fs::path& path,
                                                     const char* name, size_t count,
                                                     size_t num_vertices) {
  if (file.shape(name) !=
      std::vector<int64_t>{static_cast<int64_t>(Width), static_cast<int64_t>(count)}) {
    throw DataError(concat("ICON grid file '", path.string(), "': '", name, "' is not of shape (",
                           Width, ", ", count, ")"));
  }
  const std::vector<int32_t> numbers = file.integers(name);
  std::vector<std::array<int32_t, Width>> rows(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < Width; ++k) {
      const int64_t vertex = int64_t{numbers[k * count + i]} - 1;  // counted from 1
      if (vertex < 0 || vertex >= static_cast<int64_t>(num_vertices)) {
        throw DataError(concat("ICON grid file '", path.string(), "': '", name, "' names vertex ",
                               vertex + 1, " of ", num_vertices));
      }
      rows[i][k] = static_cast<int32_t>(vertex);
    }
  }
  return rows;
}

std::vector<double> read_radians(const NetcdfArrays& file, const fs::path& path, const char* name,
                                 double most) {
  std::vector<double> values = file.numbers(name);
  if (file.units(name) != "radian") {
    throw DataError(concat("ICON grid file '", path.string(), "': '", name,
                           "' is not in units \"radian\" but \"", file.units(name), "\""));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) <= most) continue;  // not so of NaN
    throw DataError(concat("ICON grid file '", path.string(), "': '", name, "' holds ", values[i],
                           " at index ", i));
  }
  return values;
}

// Meshes are taken apart level by level: a stray number would take as many turns.
std::vector<int32_t> read_levels(const NetcdfArrays& file, const fs::path& path, const char* name) {
  const std::vector<double> numbers = file.numbers(name);
  std::vector<int32_t> levels;
  levels.reserve(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool is_level = numbers[i] >= 0 && numbers[i] <= static_cast<double>(kMostIconLevel) &&
                          numbers[i] == std::floor(numbers[i]);
    if (!is_level) {
      throw DataError(concat("ICON grid file '", path.string(), "': '", name, "' holds ",
                             numbers[i], " at index ", i),
                      concat("levels of refinement are from 0 to ", kMostIconLevel));
    }
    levels.push_back(static_cast<int32_t>(numbers[i]));
  }
  return levels;
}

void require_size(const fs::path& path, const char* name, size_t size, size_t wanted) {
  if (size == wanted) return;
  throw DataError(concat("ICON grid file '", path.string(), "': '", name, "' has ", size,
                         " values, not ", wanted));
}

}  // namespace

int64_t IconMesh::finest_level() const {
  return vertex_level.empty() ? 0 : *std::max_element(vertex_level.begin(), vertex_level.end());
}

std::vector<int32_t> IconMesh::vertices_up_to(int64_t level) const {
  return up_to(vertex_level, level);
}

std::vector<int32_t> IconMesh::cells_up_to(int64_t level) const {
  return up_to(cell_level, level);
}

IconMesh read_icon_mesh(const fs::path& path) {
  constexpr double kMostLat = 1.5708, kMostLon = 6.2832;
  const NetcdfArrays file(path);
  IconMesh mesh;
  mesh.cell_lat_rad = read_radians(file, path, "clat", kMostLat);
  mesh.cell_lon_rad = read_radians(file, path, "clon", kMostLon);
  mesh.vertex_lat_rad = read_radians(file, path, "vlat", kMostLat);
  mesh.vertex_lon_rad = read_radians(file, path, "vlon", kMostLon);
  mesh.cell_level = read_levels(file, path, "refinement_level_c");
  mesh.vertex_level = read_levels(file, path, "refinement_level_v");
  const size_t cells = mesh.cell_lat_rad.size(), vertices = mesh.vertex_lat_rad.size();
  require_size(path, "clon", mesh.cell_lon_rad.size(), cells);
  require_size(path, "vlon", mesh.vertex_lon_rad.size(), vertices);
  require_size(path, "refinement_level_c", mesh.cell_level.size(), cells);
  require_size(path, "refinement_level_v", mesh.vertex_level.size(), vertices);
  mesh.cells = read_indices<3>(file, path, "vertex_of_cell", cells, vertices);
  const std::vector<int64_t> edges = file.shape("edge_vertices");
  mesh.edges =
      read_indices<2>(file, path, "edge_vertices",
                      edges.size() == 2 ? static_cast<size_t>(edges[1]) : size_t{0}, vertices);
  for (size_t e = 0; e < mesh.edges.size(); ++e) {
    if (mesh.edges[e][0] != mesh.edges[e][1]) continue;
    throw DataError(concat("ICON grid file '", path.string(), "': 'edge_vertices' joins vertex ",
                           mesh.edges[e][0] + 1, " with itself at index ", e));
  }
  return mesh;
}

EdgeList icon_mesh_edges(const IconMesh& mesh, int64_t level) {
  std::vector<std::vector<Pair>> levels{mesh.edges};  // fine to coarse
  for (int64_t l = mesh.finest_level(); l > 0; --l) {
    const std::vector<Pair>& edges = levels.back();
    levels.push_back(coarsened(mesh, edges, parents_of(mesh, edges, l), l));
  }
  std::reverse(levels.begin(), levels.end());
  const std::vector<int32_t> place = places(mesh.vertices_up_to(level), mesh.vertex_level.size());
  EdgeList list;
  for (size_t l = 0; l < levels.size() && static_cast<int64_t>(l) <= level; ++l) {
    for (const auto& [a, b] : levels[l]) {
      const int32_t from = place[static_cast<size_t>(a)], to = place[static_cast<size_t>(b)];
      if (from >= 0 && to >= 0) list.add(from, to);
    }
  }
  const size_t count = list.source_index.size();
  for (size_t e = 0; e < count; ++e)
    list.add(list.target_index[e], list.source_index[e]);
  return list;
}

EdgeList icon_cell_edges(const IconMesh& mesh, int64_t cell_level, int64_t vertex_level) {
  std::vector<std::optional<Triangle>> corners;
  for (Triangle cell : mesh.cells) {
    std::sort(cell.begin(), cell.end());
    corners.emplace_back(cell);
  }
  std::vector<Pair> edges = mesh.edges;
  for (int64_t l = mesh.finest_level(); l > vertex_level; --l) {
    const std::vector<Pair> parents = parents_of(mesh, edges, l);
    coarsen(corners, parents);
    edges = coarsened(mesh, edges, parents, l);
  }
  const std::vector<int32_t> place =
      places(mesh.vertices_up_to(vertex_level), mesh.vertex_level.size());
  const std::vector<int32_t> cells = mesh.cells_up_to(cell_level);
  EdgeList list;
  for (size_t c = 0; c < cells.size(); ++c) {
    const auto& triangle = corners[static_cast<size_t>(cells[c])];
    if (!triangle) continue;
    for (const int32_t vertex : *triangle) {
      const int32_t to = place[static_cast<size_t>(vertex)];
      if (to >= 0) list.add(static_cast<int32_t>(c), to);
    }
  }
  return list;
}

}  // namespace aifs::graph
