// SPDX-License-Identifier: Apache-2.0
// Cases on ICON grids: "icon_<grid>_<level>_<part>", with the grid as input/icon_<grid>/... in
// their file or in one of node builders beside it.
#pragma once

#include <memory>
#include <string>

#include "conformance/case_file.h"
#include "graph/nodes/icon_kinds.h"

namespace aifs::conformance {

// A grid of tensors; null if the file has none of this name.
std::shared_ptr<const graph::IconMesh> read_icon_mesh(const SafetensorsFile& tensors,
                                                      const std::string& grid);

struct IconCase {
  std::shared_ptr<const graph::IconMesh> mesh;
  std::string part;   // encoder, decoder or processor
  int64_t level = 0;  // of the vertices

  // Throws NotSupported where no file has the grid.
  IconCase(const CaseFile& file, const std::string& name);
  // All cells, or the vertices up to the level.
  graph::MeshNodes nodes(bool cells) const;
};

}  // namespace aifs::conformance
