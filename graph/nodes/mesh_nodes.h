// SPDX-License-Identifier: Apache-2.0
// A node set with what edges and attributes want to know about the mesh that it was made of.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/peers.h"
#include "graph/base/graph.h"
#include "graph/nodes/area_mask.h"
#include "graph/nodes/icon_mesh.h"
#include "graph/nodes/tri_nodes.h"

namespace aifs::graph {

// Which nodes of an ICON mesh a set holds.
enum class IconPart { kCells, kVertices };

struct IconNodes {
  std::shared_ptr<const IconMesh> mesh = {};
  IconPart part = IconPart::kVertices;
  int64_t max_level = 0;
  std::string file = {};  // that the mesh was read from
};

// Reads a variable of a dataset at its first date, one value a cell. Throws ConfigError naming
// `path` if there is no such variable, DataError if it cannot be read.
using FirstField =
    std::function<std::vector<float>(const std::string& variable, const std::string& path)>;

struct MeshNodes {
  NodeSet set;                                // masks are attributes of 0 and 1
  std::optional<TriNodes> tri = {};           // vertices of an icosphere
  int64_t healpix_resolution = 0;             // of a whole HEALPix grid; 0: none
  std::optional<IconNodes> icon = {};         // of an ICON mesh
  std::shared_ptr<const AreaMask> area = {};  // that the set was limited or refined by; may be null
  std::vector<int64_t> grids = {};  // cells of each grid of a combined dataset; empty: one
  FirstField field = {};            // of the dataset whose cells they are; may be empty
  Peers* peers = nullptr;           // who have the nodes, too, and divide the work on them

  // A mask attribute as bytes. Throws Error naming what there is if there is none of this name, or
  // it is not one number a node.
  std::vector<uint8_t> mask(const std::string& name) const;
};

}  // namespace aifs::graph
