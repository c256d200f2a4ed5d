// SPDX-License-Identifier: Apache-2.0
// Attributes of edges (edge_attributes.h) as options. Those of distance are scaled over all edges,
// weights of the sources of a target over the edges of that target.
#pragma once

#include "graph/edges/edge_attribute_kind.h"

namespace aifs::graph {

// Values by Own::raw<Real>(ends), with a norm.
template <class Own>
struct NormedEdgeAttribute : EdgeAttributeKind {
  Norm norm = Norm::kNone;

  EdgeValues<float> make(const EdgeEnds& ends, const std::string& path,
                         const std::string& norm_path) const final;
  EdgeValues<double> make_double(const EdgeEnds& ends, const std::string& path) const final;
  bool needs_targets() const final { return Own::kGrouped; }

 protected:
  void bind_norm(config::Binder& b);
};

struct LengthKind : NormedEdgeAttribute<LengthKind> {
  static constexpr bool kGrouped = false;

  LengthKind() = default;
  explicit LengthKind(Norm of) { norm = of; }
  void bind(config::Binder& b) override { bind_norm(b); }
  template <class Real>
  EdgeValues<Real> raw(const EdgeEnds& ends) const {
    return {1, edge_length<Real>(ends)};
  }
};

struct DirectionKind : NormedEdgeAttribute<DirectionKind> {
  static constexpr bool kGrouped = false;

  DirectionKind() = default;
  explicit DirectionKind(Norm of) { norm = of; }
  void bind(config::Binder& b) override { bind_norm(b); }
  int64_t width() const override { return 2; }
  template <class Real>
  EdgeValues<Real> raw(const EdgeEnds& ends) const {
    return {2, edge_direction<Real>(ends)};
  }
};

struct AzimuthKind : NormedEdgeAttribute<AzimuthKind> {
  static constexpr bool kGrouped = false;

  void bind(config::Binder& b) override { bind_norm(b); }
  template <class Real>
  EdgeValues<Real> raw(const EdgeEnds& ends) const {
    return {1, edge_azimuth<Real>(ends)};
  }
};

struct HarmonicsKind : NormedEdgeAttribute<HarmonicsKind> {
  static constexpr bool kGrouped = false;
  int64_t order = 3;

  void bind(config::Binder& b) override;
  int64_t width() const override { return 2 * order; }
  template <class Real>
  EdgeValues<Real> raw(const EdgeEnds& ends) const {
    return {2 * order, directional_harmonics<Real>(ends, order)};
  }
};

struct RadialBasisKind : NormedEdgeAttribute<RadialBasisKind> {
  static constexpr bool kGrouped = true;
  RadialBasis basis;

  RadialBasisKind() { norm = Norm::kL1; }
  void bind(config::Binder& b) override;
  int64_t width() const override { return static_cast<int64_t>(basis.centers.size()); }
  template <class Real>
  EdgeValues<Real> raw(const EdgeEnds& ends) const {
    return {width(), radial_basis<Real>(ends, basis)};
  }
};

struct GaussianWeightKind : NormedEdgeAttribute<GaussianWeightKind> {
  static constexpr bool kGrouped = true;
  double sigma = 1.0;

  GaussianWeightKind() { norm = Norm::kL1; }
  void bind(config::Binder& b) override;
  template <class Real>
  EdgeValues<Real> raw(const EdgeEnds& ends) const {
    return {1, gaussian_distance_weights<Real>(ends, sigma)};
  }
};

// The attribute of a node at one end of the edge, as it is.
struct NodeAttributeKindOfEnds : EdgeAttributeKind {
  std::string node_attribute = "area_weight";

  void bind(config::Binder& b) override;
  EdgeValues<float> make(const EdgeEnds& ends, const std::string& path,
                         const std::string& norm_path) const final;
  EdgeValues<double> make_double(const EdgeEnds& ends, const std::string& path) const final;

 protected:
  virtual bool of_source() const = 0;
};

struct OfSourceKind : NodeAttributeKindOfEnds {
 protected:
  bool of_source() const override { return true; }
};

struct OfTargetKind : NodeAttributeKindOfEnds {
 protected:
  bool of_source() const override { return false; }
};

}  // namespace aifs::graph
