// SPDX-License-Identifier: Apache-2.0
// The table of nodes. A new kind is a struct in a pair of files and a line here.
#include "graph/nodes/file_kinds.h"
#include "graph/nodes/grid_kinds.h"
#include "graph/nodes/icon_kinds.h"
#include "graph/nodes/tri_kinds.h"

namespace aifs::graph {

const std::vector<config::Kind<NodeKind>>& NodeKind::kinds() {
  using config::kind;
  static const std::vector<config::Kind<NodeKind>> all{
      kind<NodeKind, TriKind>("tri"),
      kind<NodeKind, LimitedAreaTriKind>("limited_area_tri"),
      kind<NodeKind, StretchedTriKind>("stretched_tri"),
      kind<NodeKind, GaussianGridKind>("gaussian"),
      kind<NodeKind, HealpixKind>("healpix"),
      kind<NodeKind, LimitedAreaHealpixKind>("limited_area_healpix"),
      kind<NodeKind, DatasetKind>("dataset"),
      kind<NodeKind, LatLonKind>("latlon"),
      kind<NodeKind, NpzKind>("npz"),
      kind<NodeKind, LimitedAreaNpzKind>("limited_area_npz"),
      kind<NodeKind, TextKind>("text"),
      kind<NodeKind, NetcdfKind>("netcdf"),
      kind<NodeKind, IconVerticesKind>("icon_vertices"),
      kind<NodeKind, IconCellsKind>("icon_cells")};
  return all;
}

}  // namespace aifs::graph
