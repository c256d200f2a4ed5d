// SPDX-License-Identifier: Apache-2.0
#include "conformance/icon_case.h"

#include <regex>

#include "conformance/report.h"

namespace aifs::conformance {

namespace {

template <size_t Width>
std::vector<std::array<int32_t, Width>> rows_of(const std::vector<int64_t>& numbers) {
  std::vector<std::array<int32_t, Width>> rows(numbers.size() / Width);
  for (size_t i = 0; i < rows.size() * Width; ++i)
    rows[i / Width][i % Width] = static_cast<int32_t>(numbers[i]);
  return rows;
}

}  // namespace

std::shared_ptr<const graph::IconMesh> read_icon_mesh(const SafetensorsFile& tensors,
                                                      const std::string& grid) {
  const std::string start = concat("input/icon_", grid, "/");
  if (!tensors.contains(start + "clat_rad")) return nullptr;
  const auto levels = [&](const char* name) {
    const std::vector<int64_t> numbers = tensors.integers(start + name);
    return std::vector<int32_t>(numbers.begin(), numbers.end());
  };
  graph::IconMesh mesh;
  mesh.cell_lat_rad = tensors.doubles(start + "clat_rad");
  mesh.cell_lon_rad = tensors.doubles(start + "clon_rad");
  mesh.vertex_lat_rad = tensors.doubles(start + "vlat_rad");
  mesh.vertex_lon_rad = tensors.doubles(start + "vlon_rad");
  mesh.cell_level = levels("refinement_level_c");
  mesh.vertex_level = levels("refinement_level_v");
  mesh.edges = rows_of<2>(tensors.integers(start + "edge_vertices_zero_based"));
  mesh.cells = rows_of<3>(tensors.integers(start + "vertex_of_cell_zero_based"));
  return std::make_shared<const graph::IconMesh>(std::move(mesh));
}

IconCase::IconCase(const CaseFile& file, const std::string& name) {
  static const std::regex pattern("icon_([a-z]+)_([0-9]+)_([a-z]+)");
  std::smatch match;
  if (!std::regex_match(name, match, pattern)) throw NotSupported("an ICON grid without a name");
  part = match[3];
  level = std::stoll(match[2]);
  mesh = read_icon_mesh(file.tensors(), match[1]);
  for (const auto& entry : fs::directory_iterator(file.json_path.parent_path())) {
    if (mesh) break;
    if (entry.path().extension() == ".safetensors")
      mesh = read_icon_mesh(SafetensorsFile(entry.path()), match[1]);
  }
  if (!mesh) throw NotSupported("an ICON grid that no file holds");
}

graph::MeshNodes IconCase::nodes(bool cells) const {
  constexpr int64_t kAll = 1000;
  graph::IconNodes icon{.mesh = mesh,
                        .part = cells ? graph::IconPart::kCells : graph::IconPart::kVertices,
                        .max_level = cells ? kAll : level};
  return graph::icon_nodes(cells ? "cells" : "vertices", std::move(icon));
}

}  // namespace aifs::conformance
