// SPDX-License-Identifier: Apache-2.0
// The table of edges. A new kind is a struct in a pair of files and a line here.
#include "graph/edges/mesh_kinds.h"
#include "graph/edges/neighbour_kinds.h"

namespace aifs::graph {

const std::vector<config::Kind<EdgeKind>>& EdgeKind::kinds() {
  using config::kind;
  static const std::vector<config::Kind<EdgeKind>> all{
      kind<EdgeKind, CutOffKind>("cutoff"),
      kind<EdgeKind, ReversedCutOffKind>("reversed_cutoff"),
      kind<EdgeKind, KnnKind>("knn"),
      kind<EdgeKind, ReversedKnnKind>("reversed_knn"),
      kind<EdgeKind, MutualKnnKind>("mutual_knn"),
      kind<EdgeKind, MultiScaleKind>("multi_scale"),
      kind<EdgeKind, HealpixMultiScaleKind>("healpix_multi_scale"),
      kind<EdgeKind, IconMeshKind>("icon_mesh"),
      kind<EdgeKind, IconCellsToMeshKind>("icon_cells"),
      kind<EdgeKind, NoEdgesKind>("none")};
  return all;
}

}  // namespace aifs::graph
