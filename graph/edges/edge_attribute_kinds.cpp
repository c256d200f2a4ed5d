// SPDX-License-Identifier: Apache-2.0
// The table of edge attributes, and what is common to them. A new kind is a struct in the header
// and a line here.
#include "graph/edges/edge_attribute_kinds.h"

#include "core/check.h"

namespace aifs::graph {

namespace {

template <class Real, class Own>
EdgeValues<Real> normed(const Own& own, const EdgeEnds& ends, const std::string& path,
                        const std::string& norm_path) {
  try {
    EdgeValues<Real> values = own.template raw<Real>(ends);
    if constexpr (Own::kGrouped)
      normalise_grouped(own.norm, values.rows, values.width, ends.target_index,
                        ends.target.num_nodes());
    else if (ends.peers)
      normalise(own.norm, values.rows, ends.num_threads, *ends.peers);
    else
      normalise(own.norm, values.rows, ends.num_threads);
    return values;
  } catch (const NumericalError& error) {
    throw ConfigError(norm_path, error.what(), "choose another norm, for example \"none\"");
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

}  // namespace

template <class Own>
EdgeValues<float> NormedEdgeAttribute<Own>::make(const EdgeEnds& ends, const std::string& path,
                                                 const std::string& norm_path) const {
  return normed<float>(static_cast<const Own&>(*this), ends, path, norm_path);
}

template <class Own>
EdgeValues<double> NormedEdgeAttribute<Own>::make_double(const EdgeEnds& ends,
                                                         const std::string& path) const {
  return normed<double>(static_cast<const Own&>(*this), ends, path, path);
}

template <class Own>
void NormedEdgeAttribute<Own>::bind_norm(config::Binder& b) {
  b.choice("norm", norm,
           {Own::kGrouped ? "how the values of the edges of a target are scaled"
                          : "how the values of all edges are scaled"});
}

template struct NormedEdgeAttribute<LengthKind>;
template struct NormedEdgeAttribute<DirectionKind>;
template struct NormedEdgeAttribute<AzimuthKind>;
template struct NormedEdgeAttribute<HarmonicsKind>;
template struct NormedEdgeAttribute<RadialBasisKind>;
template struct NormedEdgeAttribute<GaussianWeightKind>;

void HarmonicsKind::bind(config::Binder& b) {
  b.integer("order", order, {.min = 1, .max = 64},
            {"sine and cosine of 1 ... order times the angle of the direction"});
  bind_norm(b);
}

void RadialBasisKind::bind(config::Binder& b) {
  b.number_or_null("scale", basis.scale, {.min = 0.0, .max = 10.0},
                   {"length that counts as 1; null: the longest edge of the target", "radians"});
  b.number_list("centers", basis.centers, {.min = 0.0, .max = 10.0},
                {"a value for each: a bell around this length"});
  b.number("sigma", basis.sigma, {.min = 1e-6, .max = 1e6}, {"width of the bells"});
  b.number("epsilon", basis.epsilon, {.min = 0.0, .max = 1.0}, {"least scale"});
  bind_norm(b);
}

void GaussianWeightKind::bind(config::Binder& b) {
  b.number("sigma", sigma, {.min = 1e-9, .max = 1e3}, {"width of the bell", "radians"});
  bind_norm(b);
}

void NodeAttributeKindOfEnds::bind(config::Binder& b) {
  b.text("node_attribute", node_attribute, {"attribute of the node"});
}

EdgeValues<float> NodeAttributeKindOfEnds::make(const EdgeEnds& ends, const std::string& path,
                                                const std::string& /*norm_path*/) const {
  const NodeSet& nodes = of_source() ? ends.source : ends.target;
  const auto found = nodes.attributes.find(node_attribute);
  if (found == nodes.attributes.end()) {
    std::vector<std::string> known;
    for (const auto& [name, attribute] : nodes.attributes)
      known.push_back(name);
    throw ConfigError(path + ".node_attribute",
                      concat("nodes '", nodes.name, "' have no attribute '", node_attribute, "'"),
                      nearest_names(node_attribute, known));
  }
  Attribute copied =
      attribute_of_ends(found->second, of_source() ? ends.source_index : ends.target_index);
  return {copied.width, std::move(copied.values)};
}

EdgeValues<double> NodeAttributeKindOfEnds::make_double(const EdgeEnds& ends,
                                                        const std::string& path) const {
  const EdgeValues<float> values = make(ends, path, path);
  return {values.width, {values.rows.begin(), values.rows.end()}};
}

const std::vector<config::Kind<EdgeAttributeKind>>& EdgeAttributeKind::kinds() {
  using config::kind;
  static const std::vector<config::Kind<EdgeAttributeKind>> all{
      kind<EdgeAttributeKind, LengthKind>("length"),
      kind<EdgeAttributeKind, DirectionKind>("direction"),
      kind<EdgeAttributeKind, AzimuthKind>("azimuth"),
      kind<EdgeAttributeKind, HarmonicsKind>("directional_harmonics"),
      kind<EdgeAttributeKind, RadialBasisKind>("radial_basis"),
      kind<EdgeAttributeKind, GaussianWeightKind>("gaussian_weight"),
      kind<EdgeAttributeKind, OfSourceKind>("of_source"),
      kind<EdgeAttributeKind, OfTargetKind>("of_target")};
  return all;
}

}  // namespace aifs::graph
