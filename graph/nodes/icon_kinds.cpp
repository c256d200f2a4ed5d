// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/icon_kinds.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::graph {

MeshNodes icon_nodes(const std::string& name, IconNodes icon) {
  const IconMesh& mesh = *icon.mesh;
  const bool cells = icon.part == IconPart::kCells;
  const std::vector<int32_t> kept =
      cells ? mesh.cells_up_to(icon.max_level) : mesh.vertices_up_to(icon.max_level);
  const std::vector<double>& lat = cells ? mesh.cell_lat_rad : mesh.vertex_lat_rad;
  const std::vector<double>& lon = cells ? mesh.cell_lon_rad : mesh.vertex_lon_rad;
  MeshNodes nodes{.set = {name, {}, {}, {}}};
  for (const int32_t number : kept) {
    nodes.set.lat_rad.push_back(static_cast<float>(lat[static_cast<size_t>(number)]));
    nodes.set.lon_rad.push_back(static_cast<float>(lon[static_cast<size_t>(number)]));
  }
  nodes.icon = std::move(icon);
  return nodes;
}

void IconKind::bind(config::Binder& b) {
  b.text("file", file, {"netCDF file of ICON's grid generator"}, config::TextKind::kPath);
  b.integer_or_auto("max_level", max_level, {.min = 0, .max = kMostIconLevel},
                    {"finest level of refinement that belongs to the nodes; auto: all"});
}

void IconKind::validate(const std::string& path) const {
  if (file.empty()) throw ConfigError(path + ".file", "no file is named");
}

MeshNodes IconKind::make_part(const NodePlace& place, IconPart part) const {
  const auto same_file = [&](const auto& entry) {
    return entry.second.icon && entry.second.icon->file == file;
  };
  const auto read_before = std::find_if(place.before.begin(), place.before.end(), same_file);
  IconNodes icon{.part = part, .file = file};
  icon.mesh = read_before == place.before.end()
                  ? std::make_shared<const IconMesh>(read_icon_mesh(file))
                  : read_before->second.icon->mesh;
  const bool cells = part == IconPart::kCells;
  const std::vector<int32_t>& levels = cells ? icon.mesh->cell_level : icon.mesh->vertex_level;
  const int64_t finest = levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end());
  icon.max_level = max_level.value_or(finest);
  return icon_nodes(place.name, std::move(icon));
}

}  // namespace aifs::graph
