// SPDX-License-Identifier: Apache-2.0
// The table of node attributes. A new kind is a struct in a pair of files and a line here.
#include "core/check.h"
#include "graph/weights/field_kinds.h"
#include "graph/weights/mask_kinds.h"
#include "graph/weights/weight_kinds.h"

namespace aifs::graph {

const std::vector<config::Kind<NodeAttributeKind>>& NodeAttributeKind::kinds() {
  using config::kind;
  static const std::vector<config::Kind<NodeAttributeKind>> all{
      kind<NodeAttributeKind, SphericalKind>("spherical"),
      kind<NodeAttributeKind, UniformKind>("uniform"),
      kind<NodeAttributeKind, CosineLatitudeKind>("cosine_latitude"),
      kind<NodeAttributeKind, IsolatitudeKind>("isolatitude"),
      kind<NodeAttributeKind, PlanarKind>("planar"),
      kind<NodeAttributeKind, MaskedPlanarKind>("masked_planar"),
      kind<NodeAttributeKind, VariableWeightKind>("variable"),
      kind<NodeAttributeKind, CutoutMaskKind>("cutout_mask"),
      kind<NodeAttributeKind, GridsMaskKind>("grids_mask"),
      kind<NodeAttributeKind, AreaMaskKind>("area_mask"),
      kind<NodeAttributeKind, NonmissingMaskKind>("nonmissing"),
      kind<NodeAttributeKind, NonzeroMaskKind>("nonzero"),
      kind<NodeAttributeKind, NotMaskKind>("not"),
      kind<NodeAttributeKind, AndMaskKind>("and"),
      kind<NodeAttributeKind, OrMaskKind>("or")};
  return all;
}

template <class Real>
std::vector<Real> node_values(const NodeAttributeKind& kind, const MeshNodes& nodes,
                              int64_t threads, const std::string& path) {
  const std::vector<double> raw = kind.raw(nodes, threads, path);
  std::vector<Real> values(raw.begin(), raw.end());
  try {
    normalise(kind.scaling(), values, threads);
  } catch (const NumericalError& error) {
    throw ConfigError(path + ".norm", error.what(), "choose another norm, for example \"none\"");
  }
  return values;
}

template std::vector<float> node_values(const NodeAttributeKind&, const MeshNodes&, int64_t,
                                        const std::string&);
template std::vector<double> node_values(const NodeAttributeKind&, const MeshNodes&, int64_t,
                                         const std::string&);

}  // namespace aifs::graph
