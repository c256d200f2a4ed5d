// SPDX-License-Identifier: Apache-2.0
#include "conformance/graph_setup.h"

#include <algorithm>
#include <numeric>

#include "conformance/limits.h"
#include "conformance/report.h"
#include "graph/edges/multi_scale_edges.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/nodes/healpix.h"
#include "graph/weights/area_weights.h"
#include "graph/weights/planar_weights.h"

namespace aifs::conformance {

namespace {

using graph::Norm;

constexpr int64_t kThreads = 0;

// An integer that must be written as one: Anemoi refuses 3.0.
int64_t integer(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number_integer()) throw Error(concat("'", key, "' must be an integer"));
  return value.get<int64_t>();
}

graph::CutOff cut_off(const Json& builder) {
  graph::CutOff result;
  if (builder.contains("cutoff_factor")) result.factor = builder["cutoff_factor"].get<double>();
  if (builder.contains("cutoff_distance_km")) {
    result.distance_km = builder["cutoff_distance_km"].get<double>();
  }
  result.max_neighbours = value_or<int64_t>(builder, "max_num_neighbours", 64);
  return result;
}

// One builder of the neighbour family; `name` is its class.
class NeighbourBuilder {
 public:
  NeighbourBuilder(const Json& builder, const CaseNodes& source, const CaseNodes& target)
      : builder_(builder),
        source_mask_(mask(source, "source_mask_attr_name")),
        target_mask_(mask(target, "target_mask_attr_name")),
        source_(source.set, source_mask_),
        target_(target.set, target_mask_) {}

  Search knn(int64_t k) const {
    return {graph::knn_edges(source_, target_, k, kThreads), true, {}, k};
  }
  Search reversed_knn(int64_t k) const {
    return {graph::reversed_knn_edges(source_, target_, k, kThreads), false, {}, k};
  }
  Search cut_off_search(bool from_targets) const {
    const graph::CutOff limits = cut_off(builder_);
    const double radius = limits.radius(from_targets ? target_ : source_, kThreads);
    return {from_targets ? graph::cut_off_edges(source_, target_, limits, kThreads)
                         : graph::reversed_cut_off_edges(source_, target_, limits, kThreads),
            from_targets, radius, limits.max_neighbours};
  }
  BuiltEdges build() const {
    const std::string name = class_name(builder_);
    if (name == "KNNEdges") return single(knn(integer(builder_, "num_nearest_neighbours")));
    if (name == "ReversedKNNEdges") {
      return single(reversed_knn(integer(builder_, "num_nearest_neighbours")));
    }
    if (name == "CutOffEdges") return single(cut_off_search(true));
    if (name == "ReversedCutOffEdges") return single(cut_off_search(false));
    if (name != "MutualKNNEdges") throw NotSupported(concat("edges of class ", name));
    const int64_t k = integer(builder_, "num_nearest_neighbours");
    const int64_t reversed_k = value_or<int64_t>(builder_, "reversed_num_nearest_neighbours", k);
    return {graph::mutual_knn_edges(source_, target_, k, reversed_k, kThreads),
            {knn(k), reversed_knn(reversed_k)}};
  }

 private:
  std::vector<uint8_t> mask(const CaseNodes& nodes, const char* key) const {
    const auto name = value_or<std::string>(builder_, key, "");
    return name.empty() ? std::vector<uint8_t>{} : nodes.mask(name);
  }
  static BuiltEdges single(Search search) {
    BuiltEdges built;
    built.edges = search.edges;
    built.searches.push_back(std::move(search));
    return built;
  }

  const Json& builder_;
  std::vector<uint8_t> source_mask_, target_mask_;
  graph::SearchNodes source_, target_;
};

std::vector<int64_t> multi_scale_levels(const Json& builder, const CaseNodes& nodes) {
  const auto found = builder.find("scale_resolutions");
  if (found == builder.end() || found->is_null()) return nodes.default_levels;
  if (found->is_array()) return found->get<std::vector<int64_t>>();
  return graph::level_range(1, found->get<int64_t>());
}

BuiltEdges build_one(const Json& builder, const CaseNodes& source, const CaseNodes& target) {
  const std::string name = class_name(builder);
  if (name == "MultiScaleEdges") {
    if (source.set.name != target.set.name) throw Error("multi-scale edges join one node set");
    if (!source.mesh) throw Error("multi-scale edges need nodes of an icosahedral mesh");
    const graph::MultiScale options{integer(builder, "x_hops"),
                                    multi_scale_levels(builder, source)};
    const bool above_mesh =
        std::any_of(options.levels.begin(), options.levels.end(),
                    [&](int64_t level) { return level > source.mesh->refinement; });
    return {graph::multi_scale_edges(*source.mesh, options), {}, options.x_hops == 1, above_mesh};
  }
  if (name == "HEALPixMultiScaleEdges") {
    if (source.healpix_resolution == 0) throw Error("HEALPix edges need HEALPix nodes");
    CaseNodes nodes = source;
    nodes.default_levels = graph::level_range(1, source.healpix_resolution);
    return {graph::healpix_multi_scale_edges(multi_scale_levels(builder, nodes)), {}, true};
  }
  return NeighbourBuilder(builder, source, target).build();
}

graph::RadialBasis radial_basis(const Json& attribute) {
  graph::RadialBasis basis;
  if (attribute.contains("r_scale") && !attribute["r_scale"].is_null()) {
    basis.scale = attribute["r_scale"].get<double>();
  }
  basis.centers = value_or(attribute, "centers", basis.centers);
  basis.sigma = value_or(attribute, "sigma", basis.sigma);
  basis.epsilon = value_or(attribute, "epsilon", basis.epsilon);
  return basis;
}

template <class Real>
Values<Real> raw_edge_attribute(const std::string& name, const Json& attribute,
                                const graph::EdgeEnds& ends) {
  if (name == "EdgeLength") return {1, graph::edge_length<Real>(ends)};
  if (name == "EdgeDirection") return {2, graph::edge_direction<Real>(ends)};
  if (name == "Azimuth") return {1, graph::edge_azimuth<Real>(ends)};
  if (name == "DirectionalHarmonics") {
    const auto order = value_or<int64_t>(attribute, "order", 3);
    return {2 * order, graph::directional_harmonics<Real>(ends, order)};
  }
  if (name == "RadialBasisFeatures") {
    const graph::RadialBasis basis = radial_basis(attribute);
    return {static_cast<int64_t>(basis.centers.size()), graph::radial_basis<Real>(ends, basis)};
  }
  if (name == "GaussianDistanceWeights") {
    const auto sigma = value_or(attribute, "sigma", 1.0);
    return {1, graph::gaussian_distance_weights<Real>(ends, sigma)};
  }
  throw NotSupported(concat("edge attribute ", name));
}

// 1 for the nodes of the listed grids of a combined data set.
std::vector<double> grid_mask(const std::vector<int64_t>& grids,
                              const std::vector<int64_t>& wanted) {
  std::vector<double> mask;
  for (size_t g = 0; g < grids.size(); ++g) {
    const bool in =
        std::find(wanted.begin(), wanted.end(), static_cast<int64_t>(g)) != wanted.end();
    mask.insert(mask.end(), static_cast<size_t>(grids[g]), in ? 1.0 : 0.0);
  }
  for (const int64_t g : wanted) {
    if (g < 0 || g >= static_cast<int64_t>(grids.size())) {
      throw Error(concat("there is no grid ", g, " among ", grids.size()));
    }
  }
  return mask;
}

const graph::Attribute& stored_attribute(const graph::NodeSet& nodes, const std::string& name) {
  const auto found = nodes.attributes.find(name);
  if (found == nodes.attributes.end()) {
    throw Error(concat("nodes '", nodes.name, "' have no attribute '", name, "'"));
  }
  return found->second;
}

std::vector<double> raw_node_attribute(const std::string& name, const Json& attribute,
                                       const graph::NodeSet& nodes,
                                       const std::vector<int64_t>& grids) {
  if (name == "UniformWeights") return std::vector<double>(nodes.lat_rad.size(), 1.0);
  if (name == "SphericalAreaWeights") {
    if (value_or(attribute, "radius", 1.0) != 1.0) throw Error("the radius must be 1");
    return graph::spherical_area_weights(nodes.lat_rad, nodes.lon_rad, kThreads);
  }
  if (name == "PlanarAreaWeights") {
    return graph::planar_weights(nodes.lat_rad, nodes.lon_rad, kThreads).areas;
  }
  if (name == "MaskedPlanarAreaWeights") {
    const auto mask = attribute.at("mask_node_attr_name").get<std::string>();
    return graph::masked_planar_weights(nodes.lat_rad, nodes.lon_rad,
                                        stored_attribute(nodes, mask).values, kThreads);
  }
  if (name == "CosineLatWeightedAttribute") {
    return graph::cosine_latitude_weights(nodes.lat_rad, value_or(attribute, "min_value", 1e-3),
                                          value_or(attribute, "max_value", 1.0));
  }
  if (name == "IsolatitudeAreaWeights") return graph::isolatitude_weights(nodes.lat_rad);
  if (name == "CutOutMask") {
    return grid_mask(grids.empty() ? std::vector<int64_t>{nodes.num_nodes()} : grids, {0});
  }
  if (name == "BooleanNot") {
    const Json& operand = attribute.at("masks");
    std::vector<double> mask;
    if (operand.is_string()) {
      const auto operand_name = operand.get<std::string>();
      const auto& values = stored_attribute(nodes, operand_name).values;
      mask.assign(values.begin(), values.end());
    } else {
      mask = raw_node_attribute(class_name(operand), operand, nodes, grids);
    }
    for (double& value : mask)
      value = value == 0 ? 1.0 : 0.0;
    return mask;
  }
  throw NotSupported(concat("node attribute ", name));
}

}  // namespace

std::vector<uint8_t> CaseNodes::mask(const std::string& name) const {
  const auto& values = stored_attribute(set, name).values;
  std::vector<uint8_t> bytes(values.size());
  std::transform(values.begin(), values.end(), bytes.begin(),
                 [](float value) { return value != 0 ? uint8_t{1} : uint8_t{0}; });
  return bytes;
}

CaseNodes make_tri_nodes(const std::string& name, graph::TriNodes mesh) {
  CaseNodes nodes;
  nodes.set = {name, mesh.lat_rad, mesh.lon_rad, {}};
  nodes.default_levels = graph::level_range(0, mesh.refinement);
  nodes.mesh = std::move(mesh);
  return nodes;
}

BuiltEdges build_edges(const Json& builders, const CaseNodes& source, const CaseNodes& target) {
  BuiltEdges all;
  bool first = true;
  for (const Json& builder : builders) {
    BuiltEdges built = build_one(builder, source, target);
    if (first) {
      all = std::move(built);
    } else {
      all.edges = graph::merge_edges(all.edges, built.edges);
      all.searches.insert(all.searches.end(), built.searches.begin(), built.searches.end());
      all.has_order = true;
    }
    first = false;
  }
  return all;
}

std::string class_name(const Json& entry) {
  return (entry.contains("class") ? entry.at("class") : entry.at("builder")).get<std::string>();
}

Norm norm_of(const Json& attribute, Norm otherwise) {
  const auto found = attribute.find("norm");
  if (found == attribute.end()) return otherwise;
  if (found->is_null()) return Norm::kNone;
  const auto wanted = found->get<std::string>();
  for (const auto& [norm, name] : EnumNames<Norm>::table) {
    if (wanted == name) return norm;
  }
  throw Error(concat("unknown norm '", wanted, "'"));
}

template <class Real>
Values<Real> edge_attribute(const Json& attribute, const graph::EdgeEnds& ends) {
  const std::string name = class_name(attribute);
  Values<Real> values = raw_edge_attribute<Real>(name, attribute, ends);
  const bool grouped = name == "RadialBasisFeatures" || name == "GaussianDistanceWeights";
  if (grouped) {
    graph::normalise_grouped(norm_of(attribute, Norm::kL1), values.rows, values.width,
                             ends.target_index, ends.target.num_nodes());
  } else {
    graph::normalise(norm_of(attribute, Norm::kNone), values.rows);
  }
  return values;
}

double slope_of_norm(const Json& attribute, const graph::EdgeEnds& ends) {
  const auto raw = raw_edge_attribute<double>(class_name(attribute), attribute, ends);
  return norm_slope(raw.rows, edge_attribute<double>(attribute, ends).rows);
}

template <class Real>
std::vector<Real> node_attribute(const Json& attribute, const graph::NodeSet& nodes,
                                 const std::vector<int64_t>& grids) {
  const auto raw = raw_node_attribute(class_name(attribute), attribute, nodes, grids);
  std::vector<Real> values(raw.begin(), raw.end());
  graph::normalise(norm_of(attribute, Norm::kNone), values);
  return values;
}

template Values<float> edge_attribute(const Json&, const graph::EdgeEnds&);
template Values<double> edge_attribute(const Json&, const graph::EdgeEnds&);
template std::vector<float> node_attribute(const Json&, const graph::NodeSet&,
                                           const std::vector<int64_t>&);
template std::vector<double> node_attribute(const Json&, const graph::NodeSet&,
                                            const std::vector<int64_t>&);

}  // namespace aifs::conformance
