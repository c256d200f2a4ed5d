// SPDX-License-Identifier: Apache-2.0
// What nodes count for, as options (area_weights.h, planar_weights.h).
#pragma once

#include "graph/weights/node_attribute_kind.h"

namespace aifs::graph {

struct WeightKind : NodeAttributeKind {
  Norm norm = Norm::kUnitMax;

  void bind(config::Binder& b) override;
  Norm scaling() const override { return norm; }
};

struct SphericalKind : WeightKind {
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string&) const override;
  void check_places(const MeshNodes&, int64_t threads) const override;
};

struct UniformKind : WeightKind {
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string&) const override;
};

struct CosineLatitudeKind : WeightKind {
  double least = 1e-3, most = 1.0;

  void bind(config::Binder& b) override;
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string&) const override;
};

struct IsolatitudeKind : WeightKind {
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string&) const override;
};

struct PlanarKind : WeightKind {
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string&) const override;
};

struct MaskedPlanarKind : WeightKind {
  std::string mask = "cutout_mask";

  std::vector<std::string> masks_read() const override { return {mask}; }

  void bind(config::Binder& b) override;
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string& path) const override;
};

}  // namespace aifs::graph
