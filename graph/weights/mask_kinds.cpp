// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/mask_kinds.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::graph {

namespace {

// 1 for the nodes of these grids; a dataset that is not combined is one grid.
std::vector<double> mask_of_grids(const MeshNodes& nodes, const std::vector<int64_t>& wanted,
                                  const std::string& path) {
  std::vector<int64_t> sizes = nodes.grids;
  if (sizes.empty()) sizes = {nodes.set.num_nodes()};
  const auto count = static_cast<int64_t>(sizes.size());
  for (const int64_t grid : wanted) {
    if (grid >= 0 && grid < count) continue;
    throw ConfigError(path, concat("there is no grid ", grid, " among the ", count, " of '",
                                   nodes.set.name, "'"));
  }
  std::vector<double> mask;
  for (int64_t g = 0; g < count; ++g)
    mask.insert(mask.end(), static_cast<size_t>(sizes[static_cast<size_t>(g)]),
                std::find(wanted.begin(), wanted.end(), g) != wanted.end() ? 1.0 : 0.0);
  AIFS_CHECK(static_cast<int64_t>(mask.size()) == nodes.set.num_nodes(), "grids of ", mask.size(),
             " cells, and ", nodes.set.num_nodes(), " nodes");
  return mask;
}

}  // namespace

std::vector<double> CutoutMaskKind::raw(const MeshNodes& nodes, int64_t,
                                        const std::string& path) const {
  return mask_of_grids(nodes, {0}, path);
}

void GridsMaskKind::bind(config::Binder& b) {
  b.integer_list("grids", grids, {.min = 0, .max = 1 << 20},
                 {"numbers, from 0, of grids of the combined dataset"});
}

std::vector<double> GridsMaskKind::raw(const MeshNodes& nodes, int64_t,
                                       const std::string& path) const {
  return mask_of_grids(nodes, grids, path + ".grids");
}

std::vector<double> AreaMaskKind::raw(const MeshNodes& nodes, int64_t,
                                      const std::string& path) const {
  if (!nodes.area) {
    throw ConfigError(path, concat("nodes '", nodes.set.name, "' are not of an area"),
                      "this mask is for nodes of kind stretched_tri, or limited to an area");
  }
  const std::vector<uint8_t> inside = nodes.area->inside(nodes.set.lat_rad, nodes.set.lon_rad);
  return {inside.begin(), inside.end()};
}

void CombinedMaskKind::bind(config::Binder& b) {
  b.text_list("masks", masks, {"attributes of the nodes that stand before this one"});
}

void CombinedMaskKind::validate(const std::string& path) const {
  if (masks.empty()) throw ConfigError(path + ".masks", "names no mask");
}

std::vector<double> CombinedMaskKind::raw(const MeshNodes& nodes, int64_t,
                                          const std::string& path) const {
  std::vector<double> result(nodes.set.lat_rad.size(), all_of_them() ? 1.0 : 0.0);
  for (const std::string& name : masks) {
    std::vector<uint8_t> mask;
    try {
      mask = nodes.mask(name);
    } catch (const Error& error) {
      throw ConfigError(path + ".masks", error.what(), error.hint());
    }
    for (size_t i = 0; i < mask.size(); ++i) {
      const bool both =
          all_of_them() ? result[i] != 0 && mask[i] != 0 : result[i] != 0 || mask[i] != 0;
      result[i] = both ? 1.0 : 0.0;
    }
  }
  if (inverted()) {
    for (double& value : result)
      value = 1.0 - value;
  }
  return result;
}

void NotMaskKind::validate(const std::string& path) const {
  if (masks.size() != 1)
    throw ConfigError(path + ".masks", concat("names ", masks.size(), " masks, and takes one"));
}

}  // namespace aifs::graph
