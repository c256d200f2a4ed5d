// SPDX-License-Identifier: Apache-2.0
// Whole graphs: built from the options in the JSON, compared with the stored tensors. Attributes
// are compared on the stored edges, so that a tie which was decided otherwise does not spoil the
// statistics of a norm.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/cases.h"
#include "conformance/graph_compare.h"
#include "conformance/graph_summary.h"
#include "conformance/limits.h"
#include "graph/builder.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/icosphere.h"

namespace aifs::conformance {

namespace {

using Grids = std::vector<int64_t>;

// A graph case in one form, whichever file it comes from.
struct GraphCase {
  struct Edges {
    std::string source, target;
    Json builders, attributes;
  };
  std::map<std::string, CaseNodes> nodes;  // ours
  Grids grids;                             // sizes of a combined data set; empty: one grid
  std::map<std::string, Json> node_attributes;
  std::vector<Edges> edges;
};

std::vector<int32_t> same_numbers(int64_t num_nodes) {
  std::vector<int32_t> numbers(static_cast<size_t>(num_nodes));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

bool at_pole(const graph::NodeSet& nodes, int32_t node) {
  return std::abs(nodes.lat_rad[static_cast<size_t>(node)]) > 1.570796F;
}

// Edges whose direction cannot be asked for: those of (nearly) no length, where it is rounding
// noise, and in float64 those that end at a pole: there the reference takes another branch, which
// float32 never reaches.
std::vector<bool> directions_left_out(const graph::EdgeEnds& ends, bool poles_too) {
  std::vector<bool> left_out;
  const auto lengths = graph::edge_length<double>(ends);
  for (size_t e = 0; e < lengths.size(); ++e) {
    left_out.push_back(lengths[e] <= kShortEdge ||
                       (poles_too && at_pole(ends.target, ends.target_index[e])));
  }
  return left_out;
}

// Directions with the norm of `attribute`. Those left out enter its statistics, too: they are taken
// from the reference. All norms but log1p are linear maps, known from the other directions.
template <class Real>
double direction_difference(const Json& attribute, const graph::EdgeEnds& ends,
                            const SafetensorsFile& tensors, const std::string& tensor,
                            const std::vector<bool>& left_out) {
  const std::vector<double> stored = tensors.doubles(tensor);
  Values<Real> values{2, graph::edge_direction<Real>(ends)};
  if (stored.size() != values.rows.size()) return std::numeric_limits<double>::infinity();
  const graph::Norm norm = norm_of(attribute, graph::Norm::kNone);
  const auto reference = [&](size_t i) {
    return norm == graph::Norm::kLog1p ? std::expm1(stored[i]) : stored[i];
  };
  size_t least = stored.size(), most = stored.size();
  for (size_t i = 0; i < stored.size(); ++i) {
    if (left_out[i / 2]) continue;
    if (least == stored.size() || values.rows[i] < values.rows[least]) least = i;
    if (most == stored.size() || values.rows[i] > values.rows[most]) most = i;
  }
  if (least == most) return 0.0;  // no direction can be asked for
  const double slope = static_cast<double>(values.rows[most] - values.rows[least]) /
                       (reference(most) - reference(least));
  const double offset = static_cast<double>(values.rows[least]) - slope * reference(least);
  for (size_t i = 0; i < stored.size(); ++i) {
    if (left_out[i / 2]) values.rows[i] = static_cast<Real>(slope * reference(i) + offset);
  }
  graph::normalise(norm, values.rows);
  return largest_difference(values, tensors, tensor, [&](size_t e) { return !left_out[e]; });
}

template <class Real>
double attribute_difference(const Json& attribute, const graph::EdgeEnds& ends,
                            const SafetensorsFile& tensors, const std::string& tensor) {
  if (class_name(attribute) == "EdgeDirection") {
    return direction_difference<Real>(attribute, ends, tensors, tensor,
                                      directions_left_out(ends, std::is_same_v<Real, double>));
  }
  return largest_difference(edge_attribute<Real>(attribute, ends), tensors, tensor,
                            [](size_t) { return true; });
}

// Edges of one length: their standard deviation is rounding noise, and so is what it divides.
bool is_noise(const Json& attribute, const graph::EdgeEnds& ends) {
  if (class_name(attribute) != "EdgeLength" ||
      norm_of(attribute, graph::Norm::kNone) != graph::Norm::kUnitStd) {
    return false;
  }
  const auto lengths = graph::edge_length<double>(ends);
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  return *most - *least < 1e-6 * *most;
}

// How far the reference's fp32 values are from its fp64 ones. Directions of edges that are left out
// in one of them are not counted.
double own_error_of(const Json& attribute, const graph::EdgeEnds& ends,
                    const SafetensorsFile& tensors, const std::string& tensor) {
  const std::string twin = "f64/" + tensor;
  if (!tensors.contains(twin)) return 0.0;
  const auto& shape = tensors.at(tensor).shape;
  const Values<double> values{shape.size() > 1 ? shape[1] : 1, tensors.doubles(tensor)};
  std::vector<bool> left_out(static_cast<size_t>(ends.num_edges()), false);
  if (class_name(attribute) == "EdgeDirection") left_out = directions_left_out(ends, true);
  return largest_difference(values, tensors, twin, [&](size_t e) { return !left_out[e]; });
}

void compare_attributes(Comparison& comparison, const SafetensorsFile& tensors,
                        const std::string& pair, const Json& attributes,
                        const graph::EdgeEnds& ends) {
  if (ends.num_edges() == 0) return;
  for (const auto& [name, attribute] : attributes.items()) {
    if (is_noise(attribute, ends)) continue;
    const std::string tensor = concat("edges/", pair, "/", name);
    const AttributeLimits limits =
        attribute_limits(class_name(attribute), slope_of_norm(attribute, ends));
    comparison.add(tensor, attribute_difference<float>(attribute, ends, tensors, tensor),
                   limits.float32, own_error_of(attribute, ends, tensors, tensor));
    if (!tensors.contains("f64/" + tensor)) continue;
    comparison.add("f64/" + tensor,
                   attribute_difference<double>(attribute, ends, tensors, "f64/" + tensor),
                   limits.float64);
  }
}

void compare_node_attributes(Comparison& comparison, const SafetensorsFile& tensors,
                             CaseNodes& nodes, const Json& attributes, const Grids& grids) {
  for (const auto& [name, attribute] : attributes.items()) {
    const std::string tensor = concat("nodes/", nodes.set.name, "/", name);
    const auto values = node_attribute<float>(attribute, nodes.set, grids);
    nodes.set.attributes[name] = {1, values};
    comparison.add(tensor, largest_relative_difference(values, tensors, tensor), 1e-6);
  }
}

void compare_case(Comparison& comparison, const SafetensorsFile& tensors, GraphCase& graph) {
  std::map<std::string, graph::NodeSet> stored;
  std::map<std::string, std::vector<int32_t>> number;
  for (auto& [name, nodes] : graph.nodes) {
    stored[name] = read_node_set(tensors, concat("nodes/", name, "/latlon_rad"), name);
    if (nodes.mesh) {
      number[name] = match_nodes(nodes.set, stored[name], kCoordinateLimit);
    } else {
      compare_coordinates(comparison, name, nodes.set, stored[name], kCoordinateLimit);
      number[name] = same_numbers(nodes.set.num_nodes());
    }
    compare_node_attributes(comparison, tensors, nodes, graph.node_attributes[name], graph.grids);
  }
  for (const GraphCase::Edges& edges : graph.edges) {
    const std::string pair = edges.source + "_to_" + edges.target;
    const CaseNodes &source = graph.nodes.at(edges.source), &target = graph.nodes.at(edges.target);
    BuiltEdges built = build_edges(edges.builders, source, target);
    const auto &from = number.at(edges.source), &to = number.at(edges.target);
    built.edges = renumbered(built.edges, from, to);
    for (Search& search : built.searches)
      search.edges = renumbered(search.edges, from, to);
    built.has_order = false;  // node numbers differ
    const auto list = read_edge_list(tensors, concat("edges/", pair, "/edge_index"));
    compare_edges(comparison, pair, built, list, stored.at(edges.source), stored.at(edges.target));
    compare_attributes(
        comparison, tensors, pair, edges.attributes,
        {stored.at(edges.source), stored.at(edges.target), list.source_index, list.target_index});
  }
}

const char* const kNodeAttributeClass = "SphericalAreaWeights";

// Attributes of graphs/ carry names, not classes.
Json with_classes(const Json& attributes) {
  const std::map<std::string, std::string> classes{{"edge_length", "EdgeLength"},
                                                   {"edge_dirs", "EdgeDirection"},
                                                   {"azimuth", "Azimuth"},
                                                   {"gauss_weight", "GaussianDistanceWeights"}};
  Json result = attributes;
  for (auto& [name, attribute] : result.items()) {
    if (attribute.contains("class")) continue;
    const auto found = classes.find(name);
    if (found == classes.end()) throw NotSupported(concat("edge attribute ", name));
    attribute["class"] = found->second;
  }
  return result;
}

CaseNodes dataset_nodes(const std::string& name, const graph::Coordinates& degrees,
                        graph::DegreeArithmetic arithmetic) {
  CaseNodes nodes;
  nodes.set = {name,
               graph::radians_from_degrees(degrees.lat_deg, arithmetic),
               graph::radians_from_degrees(degrees.lon_deg, arithmetic),
               {}};
  return nodes;
}

// Node sets that a file stores.
std::vector<std::string> stored_sets(const SafetensorsFile& tensors) {
  std::vector<std::string> names;
  for (const auto& [tensor, entry] : tensors.entries()) {
    const std::string start = "nodes/", end = "/latlon_rad";
    if (tensor.starts_with(start) && tensor.ends_with(end))
      names.push_back(tensor.substr(start.size(), tensor.size() - start.size() - end.size()));
  }
  return names;
}

// The data nodes of graphs/: degrees as lists, hence float32 arithmetic.
CaseNodes listed_nodes(const std::string& name, const SafetensorsFile& tensors) {
  return dataset_nodes(
      name, {tensors.doubles("input/latitude_deg"), tensors.doubles("input/longitude_deg")},
      graph::DegreeArithmetic::kFloat32);
}

// The set whose coordinates are the listed ones: "data", unless another has as many nodes.
std::string listed_set(const SafetensorsFile& tensors) {
  const int64_t num_nodes = tensors.at("input/latitude_deg").shape.at(0);
  const auto has_as_many = [&](const std::string& name) {
    return tensors.at(concat("nodes/", name, "/latlon_rad")).shape.at(0) == num_nodes;
  };
  const std::vector<std::string> names = stored_sets(tensors);
  const auto usual = std::find(names.begin(), names.end(), "data");
  if (usual != names.end() && has_as_many("data")) return "data";
  const auto found = std::find_if(names.begin(), names.end(), has_as_many);
  if (found == names.end()) throw DataError("no node set has as many nodes as there are inputs");
  return *found;
}

// The refinement of an icosahedral mesh with so many nodes.
int64_t refinement_of(int64_t num_nodes) {
  for (int64_t r = 0; r <= graph::kMaxRefinement; ++r) {
    if (graph::icosphere_vertices(r) == num_nodes) return r;
  }
  throw NotSupported(concat("hidden nodes that are no whole icosahedral mesh (", num_nodes, ")"));
}

// graphs/: data grid, one hidden mesh, options spelled out.
GraphCase plain_case(const Json& json, const SafetensorsFile& tensors) {
  GraphCase graph;
  const std::string data = listed_set(tensors);
  graph.nodes[data] = listed_nodes(data, tensors);
  const Json& mesh = json.at("hidden_mesh");
  if (mesh.at("kind") != "triangular icosahedron") {
    throw NotSupported(concat("hidden mesh '", mesh.at("kind").get<std::string>(), "'"));
  }
  for (const std::string& name : stored_sets(tensors)) {
    if (name == data) continue;
    graph.nodes[name] =
        make_tri_nodes(name, graph::tri_nodes(mesh.at("refinement").get<int64_t>()));
  }
  graph.node_attributes[data] = {
      {"area_weight",
       {{"class", kNodeAttributeClass}, {"norm", value_or(json, "area_weight_norm", Json())}}}};
  for (const Json& edges : json.at("edges")) {
    graph.edges.push_back({edges.at("source").get<std::string>(),
                           edges.at("target").get<std::string>(), edges.at("builders"),
                           with_classes(json.at("edge_attributes"))});
  }
  return graph;
}

// An octahedral grid must come out of our generator, too.
void compare_grid(Comparison& comparison, const Json& grid, const SafetensorsFile& tensors) {
  if (grid.at("kind") != "octahedral") return;
  const auto ours = graph::gaussian_coordinates(
      {graph::GaussianKind::kOctahedral, grid.at("arguments").at(0).get<int64_t>()});
  const Values<double> lat{1, ours.lat_deg}, lon{1, ours.lon_deg};
  const auto all = [](size_t) { return true; };
  comparison.add("grid latitudes", largest_difference(lat, tensors, "input/latitude_deg", all),
                 1e-9);
  comparison.add("grid longitudes", largest_difference(lon, tensors, "input/longitude_deg", all),
                 1e-9);
}

// Graphs of other cases, of which only counts are told: the builders of the hierarchical recipe.
GraphCase counted_case(const Json& json, const SafetensorsFile& tensors) {
  GraphCase graph;
  const std::string data = listed_set(tensors);
  for (const auto& [name, count] : json.at("nodes").items()) {
    graph.nodes[name] =
        name == data ? listed_nodes(data, tensors)
                     : make_tri_nodes(name, graph::tri_nodes(refinement_of(count.get<int64_t>())));
  }
  graph.node_attributes[data] = {
      {"area_weight", {{"class", kNodeAttributeClass}, {"norm", "unit-max"}}}};
  const Json attributes{{"edge_length", {{"class", "EdgeLength"}, {"norm", "unit-std"}}},
                        {"edge_dirs", {{"class", "EdgeDirection"}, {"norm", "unit-std"}}}};
  for (const auto& [pair, counts] : json.at("counts").items()) {
    const size_t middle = pair.find("_to_");
    const std::string source = pair.substr(0, middle), target = pair.substr(middle + 4);
    Json builder{{"class", counts.at("edge_type")}};
    const auto num_edges = counts.at("edges").get<int64_t>();
    if (builder["class"] == "CutOffEdges") {
      builder["cutoff_factor"] = source == data ? 0.6 : 1.5;
    } else if (builder["class"] == "KNNEdges") {
      builder["num_nearest_neighbours"] = counts.at("indegree_min");
    } else {
      builder["x_hops"] = 1;
      const int64_t levels = graph.nodes.at(source).mesh->refinement;
      // 1 ... R or 0 ... R, as the number of edges tells
      const bool with_level_0 = num_edges == 20 * ((int64_t{4} << (2 * levels)) - 1);
      builder["scale_resolutions"] = with_level_0 ? Json() : Json(levels);
    }
    graph.edges.push_back({source, target, Json::array({builder}), attributes});
  }
  return graph;
}

// The value that an override of the recipe gives to an option of a node builder.
std::string node_option(const Json& json, const std::string& nodes, const std::string& option,
                        const std::string& otherwise) {
  const std::string start = concat("graph.nodes.", nodes, ".node_builder.", option, "=");
  for (const Json& entry : json.at("overrides")) {
    const auto text = entry.get<std::string>();
    if (text.starts_with(start)) return text.substr(start.size());
  }
  return otherwise;
}

// Tensors of input coordinates: that of a node set first, then all others.
std::vector<std::string> input_sets(const std::string& name, const SafetensorsFile& tensors) {
  std::vector<std::string> found;
  const std::string own = concat("input/", name, "_latlon_deg");
  if (tensors.contains(own)) found.push_back(own);
  for (const auto& [tensor, entry] : tensors.entries()) {
    if (tensor.starts_with("input/") && tensor.ends_with("_latlon_deg") && tensor != own)
      found.push_back(tensor);
  }
  return found;
}

// A mesh in or around the nodes with a cut-out mask, made by the options that its builder becomes.
CaseNodes area_nodes(const std::string& name, Json builder, const GraphCase& graph) {
  std::map<std::string, graph::MeshNodes> before;
  for (const auto& [reference, attributes] : graph.node_attributes) {
    for (const auto& [key, attribute] : attributes.items()) {
      if (class_name(attribute) != "CutOutMask" || !before.empty()) continue;
      builder["reference_node_name"] = reference;
      builder["mask_attr_name"] = key;
      before[reference].set = graph.nodes.at(reference).set;
    }
  }
  if (before.empty()) throw NotSupported("a limited area without a cut-out mask");
  const auto options = options_of_part<graph::NodeSetOptions>(anemoi::GraphPart::kNodes, builder);
  graph::MeshNodes nodes = options.kind->make({.path = "part", .name = name, .before = before});
  return make_tri_nodes(name, std::move(*nodes.tri));
}

// Node sets of a shipped recipe. Options that the case does not override are those of the recipe.
CaseNodes recipe_nodes(const Json& json, const std::string& name, const SafetensorsFile& tensors,
                       const GraphCase& graph) {
  const auto type = json.at("nodes").at(name).at("node_type").get<std::string>();
  const auto option = [&](const char* key, const char* otherwise) {
    return node_option(json, name, key, otherwise);
  };
  if (type == "AnemoiDatasetNodes") {
    const auto count = json.at("nodes").at(name).at("count").get<int64_t>();
    for (const std::string& candidate : input_sets(name, tensors)) {
      graph::Coordinates degrees = read_degrees(tensors, candidate);
      if (static_cast<int64_t>(degrees.lat_deg.size()) == count)
        return dataset_nodes(name, degrees, graph::DegreeArithmetic::kFloat64);
    }
    throw DataError(concat("there are no input coordinates of '", name, "'"));
  }
  if (type == "ReducedGaussianGridNodes") {
    return dataset_nodes(
        name, graph::gaussian_coordinates(graph::parse_gaussian_grid(option("grid", "o48"))),
        graph::DegreeArithmetic::kFloat64);
  }
  if (type == "TriNodes") {
    const auto count = json.at("nodes").at(name).at("count").get<int64_t>();
    return make_tri_nodes(name, graph::tri_nodes(refinement_of(count)));
  }
  if (type == "LimitedAreaTriNodes") {
    return area_nodes(name,
                      {{"class", type},
                       {"resolution", std::stoll(option("resolution", "6"))},
                       {"margin_radius_km", std::stod(option("margin_radius_km", "10"))}},
                      graph);
  }
  if (type == "StretchedTriNodes") {
    return area_nodes(name,
                      {{"class", type},
                       {"global_resolution", std::stoll(option("global_resolution", "5"))},
                       {"lam_resolution", std::stoll(option("lam_resolution", "8"))},
                       {"margin_radius_km", std::stod(option("margin_radius_km", "11"))}},
                      graph);
  }
  throw NotSupported(concat("nodes of class ", type));
}

// A recipe shipped with Anemoi, composed with small resolutions.
GraphCase recipe_case(const Json& json, const SafetensorsFile& tensors) {
  GraphCase graph;
  graph.grids = value_or(json, "grids", Grids{});
  for (const auto& [name, unused] : json.at("nodes").items()) {
    CaseNodes nodes = recipe_nodes(json, name, tensors, graph);
    graph.node_attributes[name] = json.at("node_attributes").at(name);
    // Masks are needed by later node sets; weights are computed when they are compared.
    for (const auto& [key, attribute] : graph.node_attributes[name].items()) {
      const std::string kind = class_name(attribute);
      if (kind != "CutOutMask" && kind != "BooleanNot") continue;
      nodes.set.attributes[key] = {1, node_attribute<float>(attribute, nodes.set, graph.grids)};
    }
    graph.nodes[name] = std::move(nodes);
  }
  for (const Json& edges : json.at("edges")) {
    graph.edges.push_back({edges.at("source").get<std::string>(),
                           edges.at("target").get<std::string>(), edges.at("builders"),
                           edges.at("attributes")});
  }
  return graph;
}

void compare_reference_distances(Comparison& comparison, const Json& json, GraphCase& graph) {
  const auto compare = [&](const std::string& name, const Json& distance) {
    if (distance.is_null() || graph.nodes.count(name) == 0) return;
    comparison.add(
        concat("reference distance of ", name),
        std::abs(graph::reference_distance(graph.nodes[name].set, 0) - distance.get<double>()),
        1e-7);
  };
  const char* key = "grid_reference_distance_chord";
  if (json.contains(key)) {
    for (const auto& [name, distance] : json[key].items())
      compare(name, distance);
  } else if (json.at("nodes").is_object()) {
    for (const auto& [name, nodes] : json.at("nodes").items())
      compare(name, nodes.is_object() ? nodes.value(key, Json()) : Json());
  }
}

}  // namespace

void run_graph_case(const CaseFile& file, Report& report) {
  const Json& json = file.json;
  if (json.contains("graphs") && json.contains("meshes")) return run_graph_summary(file, report);
  report.run("graph", file.name, [&](Comparison& comparison) {
    const SafetensorsFile tensors = file.tensors();
    GraphCase graph;
    if (json.contains("data_grid")) {
      graph = plain_case(json, tensors);
      compare_grid(comparison, json["data_grid"], tensors);
    } else if (json.contains("node_attributes")) {
      graph = recipe_case(json, tensors);
    } else {
      graph = counted_case(json, tensors);
    }
    if (json.contains("nodes")) compare_reference_distances(comparison, json, graph);
    compare_case(comparison, tensors, graph);
  });
}

}  // namespace aifs::conformance
