// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/mesh_kinds.h"

#include <algorithm>

#include "core/check.h"
#include "graph/edges/multi_scale_edges.h"
#include "graph/nodes/healpix.h"
#include "graph/nodes/icosphere.h"

namespace aifs::graph {

namespace {

void require_one_set(const EdgePlace& place, const char* kind) {
  if (place.within_one_set()) return;
  throw ConfigError(place.path,
                    concat(kind, " edges join the nodes of one set, not '", place.source.set.name,
                           "' and '", place.target.set.name, "'"),
                    "between two sets: knn or cutoff");
}

[[noreturn]] void wrong_nodes(const EdgePlace& place, const std::string& name, const char* kind,
                              const char* nodes) {
  throw ConfigError(place.path,
                    concat(kind, " edges need nodes of ", nodes, ", and '", name, "' are none"),
                    "on other nodes: \"kind\": \"knn\" or \"cutoff\"");
}

bool is_part(const MeshNodes& nodes, IconPart part) {
  return nodes.icon && nodes.icon->part == part;
}

}  // namespace

void MultiScaleKind::bind(config::Binder& b) {
  b.integer_list("levels", levels, {.min = 0, .max = kMaxRefinement},
                 {"levels of refinement; empty: 1 to that of the nodes"});
  b.boolean("include_level_0", include_level_0,
            {"with an empty list: also the edges of the icosahedron"});
  b.integer("x_hops", x_hops, {.min = 1, .max = 100},
            {"joins nodes up to so many mesh edges apart"});
}

std::vector<int64_t> MultiScaleKind::levels_of(int64_t refinement) const {
  if (!levels.empty()) return levels;
  return level_range(include_level_0 || refinement == 0 ? 0 : 1, refinement);
}

void MultiScaleKind::check(const EdgePlace& place) const {
  require_one_set(place, "multi_scale");
  if (!place.source.tri)
    wrong_nodes(place, place.source.set.name, "multi_scale", "an icosahedral mesh");
}

EdgeList MultiScaleKind::make(const EdgePlace& place) const {
  const TriNodes& mesh = *place.source.tri;
  try {
    return multi_scale_edges(mesh, {x_hops, levels_of(mesh.refinement)});
  } catch (const Error& error) {
    throw ConfigError(place.path + ".levels", error.what(), error.hint());
  }
}

void HealpixMultiScaleKind::bind(config::Binder& b) {
  b.integer_list("levels", levels, {.min = 1, .max = kMaxHealpixResolution},
                 {"resolutions whose pixels are joined with their neighbours; empty: 1 to that of "
                  "the nodes"});
}

void HealpixMultiScaleKind::check(const EdgePlace& place) const {
  require_one_set(place, "healpix_multi_scale");
  const int64_t resolution = place.source.healpix_resolution;
  if (resolution == 0)
    wrong_nodes(place, place.source.set.name, "healpix_multi_scale", "a whole HEALPix grid");
  if (!levels.empty() && *std::max_element(levels.begin(), levels.end()) > resolution) {
    throw ConfigError(place.path + ".levels",
                      concat("names levels beyond the resolution of the nodes, ", resolution));
  }
}

EdgeList HealpixMultiScaleKind::make(const EdgePlace& place) const {
  const EdgeList all = healpix_multi_scale_edges(
      levels.empty() ? level_range(1, place.source.healpix_resolution) : levels);
  EdgeList edges;
  for (size_t e = 0; e < all.source_index.size(); ++e)
    if (all.target_index[e] >= 0) edges.add(all.source_index[e], all.target_index[e]);
  return edges;
}

void IconMeshKind::check(const EdgePlace& place) const {
  require_one_set(place, "icon_mesh");
  if (!is_part(place.source, IconPart::kVertices))
    wrong_nodes(place, place.source.set.name, "icon_mesh", "kind icon_vertices");
}

EdgeList IconMeshKind::make(const EdgePlace& place) const {
  return icon_mesh_edges(*place.source.icon->mesh, place.source.icon->max_level);
}

void IconCellsToMeshKind::check(const EdgePlace& place) const {
  const bool from_cells = is_part(place.source, IconPart::kCells);
  const MeshNodes& cells = from_cells ? place.source : place.target;
  const MeshNodes& vertices = from_cells ? place.target : place.source;
  if (is_part(cells, IconPart::kCells) && is_part(vertices, IconPart::kVertices) &&
      cells.icon->file == vertices.icon->file)
    return;
  throw ConfigError(place.path,
                    "icon_cells edges join nodes of kinds icon_cells and icon_vertices of one file",
                    "between other nodes: knn or cutoff");
}

EdgeList IconCellsToMeshKind::make(const EdgePlace& place) const {
  const bool from_cells = is_part(place.source, IconPart::kCells);
  const IconNodes& cells = *(from_cells ? place.source : place.target).icon;
  const IconNodes& vertices = *(from_cells ? place.target : place.source).icon;
  EdgeList edges = icon_cell_edges(*cells.mesh, cells.max_level, vertices.max_level);
  if (!from_cells) std::swap(edges.source_index, edges.target_index);
  return edges;
}

}  // namespace aifs::graph
