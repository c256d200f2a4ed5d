// SPDX-License-Identifier: Apache-2.0
// The mesh of an ICON grid file: triangles made by halving the edges of coarser ones, level by
// level. Nodes are vertices or cells up to a level; edges follow the triangles of all levels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/file_io.h"
#include "graph/base/edge_list.h"

namespace aifs::graph {

constexpr int64_t kMostIconLevel = 30;

struct IconMesh {
  std::vector<double> cell_lat_rad, cell_lon_rad, vertex_lat_rad, vertex_lon_rad;
  std::vector<int32_t> cell_level, vertex_level;  // at which each came into being
  std::vector<std::array<int32_t, 2>> edges;      // vertices at both ends, finest level
  std::vector<std::array<int32_t, 3>> cells;      // vertices of each cell
  int64_t finest_level() const;                   // of vertices

  // The numbers of those up to a level, in the order of the file.
  std::vector<int32_t> vertices_up_to(int64_t level) const;
  std::vector<int32_t> cells_up_to(int64_t level) const;
};

// Variables clon, clat, vlon, vlat (radian), refinement_level_c, refinement_level_v, edge_vertices
// (nc, edge) and vertex_of_cell (nv, cell), as ICON's grid generator writes them. Throws DataError
// naming file and variable for what is missing, of another shape, or out of range.
IconMesh read_icon_mesh(const fs::path& path);

// Edges among the vertices up to `level`: those of the mesh of each level from 0, coarse to fine,
// then all of them the other way round. Numbers count vertices_up_to(level). Edges whose parents
// are incomplete, at the boundary of a limited area, are left out.
EdgeList icon_mesh_edges(const IconMesh& mesh, int64_t level);

// From each cell up to `cell_level` to the three vertices, up to `vertex_level`, of the triangle of
// that level that it lies in. Cells without a complete one, at the boundary of a limited area, have
// no edges.
EdgeList icon_cell_edges(const IconMesh& mesh, int64_t cell_level, int64_t vertex_level);

}  // namespace aifs::graph
