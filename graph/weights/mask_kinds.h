// SPDX-License-Identifier: Apache-2.0
// Masks of nodes: 1 for some nodes, 0 for the others.
#pragma once

#include "graph/weights/node_attribute_kind.h"

namespace aifs::graph {

struct MaskKind : NodeAttributeKind {
  bool is_mask() const override { return true; }
};

// Nodes of the first grid of a combined dataset: the region of a cutout.
struct CutoutMaskKind : MaskKind {
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string& path) const override;
};

// Nodes of some grids of a combined dataset.
struct GridsMaskKind : MaskKind {
  std::vector<int64_t> grids{0};

  void bind(config::Binder& b) override;
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string& path) const override;
};

// Nodes inside the area that the set was limited or refined by.
struct AreaMaskKind : MaskKind {
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string& path) const override;
};

// A mask made of others, which stand before it.
struct CombinedMaskKind : MaskKind {
  std::vector<std::string> masks;

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string& path) const override;
  std::vector<std::string> masks_read() const override { return masks; }

 protected:
  virtual bool all_of_them() const { return true; }
  virtual bool inverted() const { return false; }
};

struct NotMaskKind : CombinedMaskKind {
  void validate(const std::string& path) const override;

 protected:
  bool inverted() const override { return true; }
};

struct AndMaskKind : CombinedMaskKind {};

struct OrMaskKind : CombinedMaskKind {
 protected:
  bool all_of_them() const override { return false; }
};

}  // namespace aifs::graph
