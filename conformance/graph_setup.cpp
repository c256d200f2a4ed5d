// SPDX-License-Identifier: Apache-2.0
#include "conformance/graph_setup.h"

#include <algorithm>
#include <numeric>

#include "conformance/anemoi_form.h"
#include "conformance/limits.h"
#include "conformance/report.h"
#include "graph/edges/mesh_kinds.h"
#include "graph/edges/multi_scale_edges.h"
#include "graph/edges/neighbour_kinds.h"

namespace aifs::conformance {

namespace {

using graph::Norm;

constexpr int64_t kThreads = 0;

// An edge builder with the levels that it has on these nodes if it names none.
Json with_levels(Json builder, const CaseNodes& nodes) {
  const bool is_mesh = class_name(builder) == "MultiScaleEdges";
  if (is_mesh && nodes.mesh && value_or(builder, "scale_resolutions", Json()).is_null())
    builder["scale_resolutions"] = nodes.default_levels;
  return builder;
}

// The searches of a kind of neighbours, which tell where ties may be decided otherwise.
std::vector<Search> searches_of(const graph::EdgeKind& kind, const graph::EdgePlace& place,
                                const graph::EdgeList& edges) {
  const auto* neighbours = dynamic_cast<const graph::NeighbourKind*>(&kind);
  if (!neighbours) return {};
  const auto mask = [](const graph::MeshNodes& nodes, const std::string& name) {
    return name.empty() ? std::vector<uint8_t>{} : nodes.mask(name);
  };
  const auto sources = mask(place.source, neighbours->source_mask);
  const auto targets = mask(place.target, neighbours->target_mask);
  const graph::SearchNodes source(place.source.set, sources), target(place.target.set, targets);
  if (const auto* mutual = dynamic_cast<const graph::MutualKnnKind*>(&kind)) {
    const int64_t k = mutual->num_neighbours, back = mutual->reversed_num_neighbours.value_or(k);
    return {{graph::knn_edges(source, target, k, kThreads), true, {}, k},
            {graph::reversed_knn_edges(source, target, back, kThreads), false, {}, back}};
  }
  if (const auto* knn = dynamic_cast<const graph::KnnKind*>(&kind))
    return {{edges, true, {}, knn->num_neighbours}};
  if (const auto* knn = dynamic_cast<const graph::ReversedKnnKind*>(&kind))
    return {{edges, false, {}, knn->num_neighbours}};
  const auto& cut_off = dynamic_cast<const graph::CutOffKind&>(kind);
  const bool from_targets = !dynamic_cast<const graph::ReversedCutOffKind*>(&kind);
  const graph::CutOff limits = cut_off.limits();
  return {{edges, from_targets, limits.radius(from_targets ? target : source, kThreads),
           limits.max_neighbours}};
}

BuiltEdges build_one(const Json& builder, const CaseNodes& source, const CaseNodes& target) {
  const auto options =
      options_of_part<graph::EdgeOptions>(anemoi::GraphPart::kEdges, with_levels(builder, source));
  const graph::MeshNodes from = source.for_builders(), to = target.for_builders();
  const graph::EdgePlace place{"edges", from, to, kThreads};
  options.kind->check(place);
  BuiltEdges built;
  built.edges = options.kind->make(place);
  built.searches = searches_of(*options.kind, place, built.edges);
  if (const auto* multi_scale = options.kind.as<graph::MultiScaleKind>()) {
    const auto levels = multi_scale->levels_of(source.mesh->refinement);
    built.has_order = multi_scale->x_hops == 1;
    built.has_undecided_loops = std::any_of(levels.begin(), levels.end(), [&](int64_t level) {
      return level > source.mesh->refinement;
    });
  }
  built.has_order = built.has_order || options.kind.as<graph::HealpixMultiScaleKind>() != nullptr;
  return built;
}

graph::EdgeAttributeOptions edge_attribute_options(const Json& attribute) {
  return options_of_part<graph::EdgeAttributeOptions>(anemoi::GraphPart::kEdgeAttribute, attribute);
}

const graph::Attribute& stored_attribute(const graph::NodeSet& nodes, const std::string& name) {
  const auto found = nodes.attributes.find(name);
  if (found == nodes.attributes.end()) {
    throw Error(concat("nodes '", nodes.name, "' have no attribute '", name, "'"));
  }
  return found->second;
}

}  // namespace

std::vector<uint8_t> CaseNodes::mask(const std::string& name) const {
  const auto& values = stored_attribute(set, name).values;
  std::vector<uint8_t> bytes(values.size());
  std::transform(values.begin(), values.end(), bytes.begin(),
                 [](float value) { return value != 0 ? uint8_t{1} : uint8_t{0}; });
  return bytes;
}

graph::MeshNodes CaseNodes::for_builders() const {
  graph::MeshNodes nodes{.set = set};
  nodes.tri = mesh;
  nodes.healpix_resolution = healpix_resolution;
  nodes.icon = icon;
  return nodes;
}

template <class Options>
Options options_of_part(anemoi::GraphPart part, const Json& definition) {
  const anemoi::Imported imported = anemoi::import_graph_part(part, anemoi_form(definition));
  Options options;
  config::read(options, section_of(imported, "part"), "part", {});
  return options;
}

template graph::NodeSetOptions options_of_part(anemoi::GraphPart, const Json&);
template graph::EdgeOptions options_of_part(anemoi::GraphPart, const Json&);
template graph::EdgeAttributeOptions options_of_part(anemoi::GraphPart, const Json&);
template graph::PostOptions options_of_part(anemoi::GraphPart, const Json&);

std::vector<std::pair<std::string, graph::NodeAttributeOptions>> node_attribute_options(
    const Json& definition) {
  const anemoi::Imported imported =
      anemoi::import_graph_part(anemoi::GraphPart::kNodeAttribute, anemoi_form(definition));
  std::vector<std::pair<std::string, graph::NodeAttributeOptions>> all;
  for (const Json& entry : section_of(imported, "part")) {
    all.emplace_back(entry.at(0).get<std::string>(), graph::NodeAttributeOptions());
    config::read(all.back().second, entry.at(1), "part", {});
  }
  return all;
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

template <>
Values<float> edge_attribute(const Json& attribute, const graph::EdgeEnds& ends) {
  return edge_attribute_options(attribute).kind->make(ends, "attribute", "attribute.norm");
}

template <>
Values<double> edge_attribute(const Json& attribute, const graph::EdgeEnds& ends) {
  return edge_attribute_options(attribute).kind->make_double(ends, "attribute");
}

double slope_of_norm(const Json& attribute, const graph::EdgeEnds& ends) {
  Json raw = attribute;
  raw["norm"] = nullptr;
  return norm_slope(edge_attribute<double>(raw, ends).rows,
                    edge_attribute<double>(attribute, ends).rows);
}

template <class Real>
std::vector<Real> node_attribute(const Json& attribute, const graph::NodeSet& nodes,
                                 const std::vector<int64_t>& grids) {
  graph::MeshNodes view{.set = nodes};
  view.grids = grids;
  std::vector<Real> values;
  for (const auto& [name, options] : node_attribute_options(attribute)) {
    values = graph::node_values<Real>(*options.kind, view, kThreads, name);
    view.set.attributes[name] = {1, {values.begin(), values.end()}};
  }
  return values;
}

template std::vector<float> node_attribute(const Json&, const graph::NodeSet&,
                                           const std::vector<int64_t>&);
template std::vector<double> node_attribute(const Json&, const graph::NodeSet&,
                                            const std::vector<int64_t>&);

}  // namespace aifs::conformance
