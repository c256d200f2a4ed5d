// SPDX-License-Identifier: Apache-2.0
// Cells and vertices of an ICON grid file as nodes (icon_mesh.h).
#pragma once

#include "graph/nodes/node_kind.h"

namespace aifs::graph {

// The nodes of a part of a mesh up to a level.
MeshNodes icon_nodes(const std::string& name, IconNodes icon);

struct IconKind : NodeKind {
  std::string file;
  std::optional<int64_t> max_level;  // empty: the finest

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  std::string coordinate_file() const override { return file; }

 protected:
  MeshNodes make_part(const NodePlace& place, IconPart part) const;
};

struct IconCellsKind : IconKind {
  MeshNodes make(const NodePlace& place) const override {
    return make_part(place, IconPart::kCells);
  }
};

struct IconVerticesKind : IconKind {
  MeshNodes make(const NodePlace& place) const override {
    return make_part(place, IconPart::kVertices);
  }
};

}  // namespace aifs::graph
