// SPDX-License-Identifier: Apache-2.0
#include "conformance/graph_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "conformance/graph_setup.h"
#include "graph/base/kd_tree.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/weights/area_weights.h"

namespace aifs::conformance {

namespace {

// Targets count as ambiguous in the file if the gap of the distances (chord) is smaller.
constexpr double kAmbiguousGap = 1e-6;
// Rounding of lengths (radians) in the float32 arithmetic of the reference.
constexpr double kLengthRounding = 1e-6;

double relative(double ours, double reference) {
  return std::abs(ours - reference) / std::max(std::abs(reference), 1e-300);
}

double sum(const std::vector<float>& values) {
  double total = 0.0;
  for (const float value : values)
    total += static_cast<double>(value);
  return total;
}

// How near count, sum, sum of squares, minimum and maximum of values must be.
struct ValueLimits {
  double sum_relative = 1e-6;
  double sum_absolute = 0.0;  // if positive: values of both signs, whose sum says little
  double squares_relative = 1e-6;
  double extremes_absolute = 0.0;  // in addition to 1e-6 of the value
};

void compare_values(Comparison& comparison, const std::string& what, const Json& json,
                    const std::vector<float>& values, const ValueLimits& limits) {
  comparison.require(static_cast<int64_t>(values.size()) == json.at("count").get<int64_t>(),
                     concat(what, ": ", values.size(), " values"));
  if (values.empty()) return;
  double squares = 0.0;
  for (const float value : values)
    squares += static_cast<double>(value) * static_cast<double>(value);
  const auto reference = [&](const char* key) { return json.at(key).get<double>(); };
  if (limits.sum_absolute > 0) {
    comparison.add(what + " sum", std::abs(sum(values) - reference("sum")), limits.sum_absolute);
  } else {
    comparison.add(what + " sum", relative(sum(values), reference("sum")), limits.sum_relative);
  }
  comparison.add(what + " sum of squares", relative(squares, reference("sum_of_squares")),
                 limits.squares_relative);
  const auto compare_extreme = [&](const char* key, float value) {
    comparison.add(concat(what, " ", key), std::abs(static_cast<double>(value) - reference(key)),
                   1e-6 * std::abs(reference(key)) + limits.extremes_absolute);
  };
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  compare_extreme("min", *least);
  compare_extreme("max", *most);
}

uint64_t hash(int32_t source, int32_t target) {
  uint64_t z = (static_cast<uint64_t>(static_cast<uint32_t>(source)) << 32) +
               static_cast<uint32_t>(target) + 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::string hexadecimal(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

void compare_checksums(Comparison& comparison, const std::string& what, const Json& json,
                       const graph::EdgeList& edges) {
  uint64_t sources = 0, targets = 0, products = 0, exclusive_or = 0, hashes = 0;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    const int32_t s = edges.source_index[e], t = edges.target_index[e];
    sources += static_cast<uint64_t>(s);
    targets += static_cast<uint64_t>(t);
    products += static_cast<uint64_t>(s) * static_cast<uint64_t>(t);
    exclusive_or ^= hash(s, t);
    hashes += hash(s, t);
  }
  comparison.require(sources == json.at("sum_source").get<uint64_t>() &&
                         targets == json.at("sum_target").get<uint64_t>() &&
                         json.at("sum_source_times_target_mod_2_64") == concat(products) &&
                         json.at("xor_of_hashes") == hexadecimal(exclusive_or) &&
                         json.at("sum_of_hashes_mod_2_64") == hexadecimal(hashes),
                     what + ": checksums differ");
}

void compare_histogram(Comparison& comparison, const std::string& what, const Json& json,
                       const std::vector<int32_t>& index, int64_t num_nodes) {
  std::vector<int64_t> degree(static_cast<size_t>(num_nodes), 0);
  for (const int32_t node : index)
    ++degree[static_cast<size_t>(node)];
  std::map<std::string, int64_t> ours;
  for (const int64_t d : degree)
    ++ours[concat(d)];
  comparison.require(ours == json.get<std::map<std::string, int64_t>>(), what + " differs");
}

// Targets whose k-th and next nearest sources are equally far up to rounding.
std::vector<bool> ambiguous_targets(const graph::NodeSet& source, const graph::NodeSet& target,
                                    int64_t k) {
  const graph::KdTree<float> tree(graph::unit_vectors<float>(source.lat_rad, source.lon_rad));
  std::vector<bool> ambiguous;
  std::vector<graph::Neighbour> found;
  for (const auto& point : graph::unit_vectors<float>(target.lat_rad, target.lon_rad)) {
    tree.nearest(point, k + 1, found);
    ambiguous.push_back(static_cast<int64_t>(found.size()) > k &&
                        std::sqrt(found[static_cast<size_t>(k)].distance2) -
                                std::sqrt(found[static_cast<size_t>(k) - 1].distance2) <
                            kAmbiguousGap);
  }
  return ambiguous;
}

graph::EdgeList without_targets(const graph::EdgeList& edges, const std::vector<bool>& left_out) {
  graph::EdgeList kept;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    if (!left_out[static_cast<size_t>(edges.target_index[e])]) {
      kept.add(edges.source_index[e], edges.target_index[e]);
    }
  }
  return kept;
}

void compare_edge_values(Comparison& comparison, const std::string& what, const Json& json,
                         const graph::EdgeEnds& ends) {
  const auto values = [&](const char* kind, Json norm) {
    return edge_attribute<float>({{"class", kind}, {"norm", std::move(norm)}}, ends).rows;
  };
  ValueLimits length_limits{.extremes_absolute = kLengthRounding};
  compare_values(comparison, what + " lengths", json.at("raw_length"),
                 values("EdgeLength", nullptr), length_limits);
  if (!json.contains("edge_length_unit_std")) return;
  length_limits.extremes_absolute /= json.at("std_of_lengths").get<double>();
  compare_values(comparison, what + " unit-std lengths", json["edge_length_unit_std"],
                 values("EdgeLength", "unit-std"), length_limits);
  // A tie that is decided otherwise changes a component by up to 2, its square by up to 1.
  const double ties = json.value("ambiguous_targets", 0.0);
  ValueLimits limits;
  limits.sum_absolute = 1e-3 + 2 * ties;
  limits.squares_relative = 1e-6 + ties / (static_cast<double>(ends.num_edges()) / 2);
  limits.extremes_absolute = 1e-6;
  const auto dirs = values("EdgeDirection", nullptr);
  for (const size_t column : {0, 1}) {
    std::vector<float> component;
    for (size_t i = column; i < dirs.size(); i += 2)
      component.push_back(dirs[i]);
    const char* key = column == 0 ? "raw_dirs_x" : "raw_dirs_y";
    compare_values(comparison, concat(what, " ", key), json.at(key), component, limits);
  }
}

void compare_edge_set(Comparison& comparison, const std::string& what, const Json& json,
                      const graph::EdgeList& edges, const CaseNodes& source,
                      const CaseNodes& target) {
  const bool ambiguous = json.value("ambiguous_targets", 0) > 0;
  const auto count = json.at("count").get<int64_t>();
  const Json limits = json.value("count_with_radius_changed_by_1e-6", Json());
  const bool exact = limits.is_null() || limits.at(0) == limits.at(1);
  if (!exact) {
    comparison.require(edges.num_edges() >= limits.at(0).get<int64_t>() &&
                           edges.num_edges() <= limits.at(1).get<int64_t>(),
                       concat(what, ": ", edges.num_edges(), " edges, reference ", count));
    return;  // some edges lie on the radius: nothing else can be equal
  }
  comparison.require(edges.num_edges() == count,
                     concat(what, ": ", edges.num_edges(), " edges, reference ", count));
  if (edges.num_edges() != count) return;
  compare_histogram(comparison, what + " in-degrees", json.at("indegree_histogram"),
                    edges.target_index, target.set.num_nodes());
  if (json.contains("outdegree_histogram") && !ambiguous) {
    compare_histogram(comparison, what + " out-degrees", json["outdegree_histogram"],
                      edges.source_index, source.set.num_nodes());
  }
  if (json.contains("checksums")) compare_checksums(comparison, what, json["checksums"], edges);
  if (json.contains("checksums_without_ambiguous_targets")) {
    const auto left_out = ambiguous_targets(source.set, target.set,
                                            count / std::max<int64_t>(1, target.set.num_nodes()));
    comparison.require(std::count(left_out.begin(), left_out.end(), true) ==
                           json.at("ambiguous_targets").get<int64_t>(),
                       what + ": another number of ambiguous targets");
    compare_checksums(comparison, what, json["checksums_without_ambiguous_targets"],
                      without_targets(edges, left_out));
  }
  compare_edge_values(comparison, what, json,
                      {source.set, target.set, edges.source_index, edges.target_index, 0});
}

void compare_node_values(Comparison& comparison, const Json& json, const CaseNodes& data,
                         const CaseNodes& hidden) {
  const auto weights = [&](const char* kind, Json norm, const CaseNodes& nodes) {
    return node_attribute<float>({{"class", kind}, {"norm", std::move(norm)}}, nodes.set, {});
  };
  const auto raw = weights("SphericalAreaWeights", nullptr, data);
  compare_values(comparison, "data areas", json.at("data_raw_area"), raw, {});
  compare_values(comparison, "data area weights", json.at("data_area_weight"),
                 weights("SphericalAreaWeights", "unit-max", data), {});
  compare_values(comparison, "data iso-latitude weights", json.at("data_isolatitude"),
                 weights("IsolatitudeAreaWeights", "unit-max", data), {});
  compare_values(comparison, "hidden areas", json.at("hidden_raw_area"),
                 weights("SphericalAreaWeights", nullptr, hidden), {});
  const auto rows = graph::parse_gaussian_grid(json.at("grid").get<std::string>()).row_lengths();
  size_t first = 0, row = 0;
  for (const Json& area : json.at("data_raw_area").at("first_point_of_rows_north")) {
    comparison.add(concat("area of the first point of row ", row),
                   relative(raw[first], area.get<double>()), 1e-6);
    first += static_cast<size_t>(rows[row++]);
  }
  std::set<float> latitudes(hidden.set.lat_rad.begin(), hidden.set.lat_rad.end());
  comparison.require(
      static_cast<int64_t>(latitudes.size()) ==
          json.at("hidden_coordinates").at("distinct_float32_latitudes").get<int64_t>(),
      "another number of distinct latitudes");
}

void compare_reference_distance(Comparison& comparison, const CaseNodes& nodes, const Json& json) {
  comparison.add(concat("reference distance of ", nodes.set.name),
                 std::abs(graph::reference_distance(nodes.set, 0) - json.get<double>()), 1e-7);
}

// The builder of an edge set: the one it names; else a cut-off, told by its radius (in spacings of
// the target's nodes), or as many nearest sources as every target has, or, within one set, the
// multi-scale edges of levels 1 ... R, or 0 ... R, as the number of edges tells.
Json builder_of(const Json& json, const std::string& name, const CaseNodes& source,
                const CaseNodes& target) {
  const Json& entry = json.at("edges").at(name);
  if (entry.contains("builder")) return entry["builder"];
  const auto count = entry.at("count").get<int64_t>();
  if (source.set.name == target.set.name) {
    const int64_t levels = source.mesh.value().refinement;
    const bool with_level_0 = count == 20 * ((int64_t{4} << (2 * levels)) - 1);
    return {{"class", "MultiScaleEdges"},
            {"x_hops", 1},
            {"scale_resolutions", with_level_0 ? Json() : Json(levels)}};
  }
  if (entry.contains("radius_chord")) {
    const double spacing =
        json.at("grid_reference_distance_chord").at(target.set.name).get<double>();
    constexpr double kDigits = 1e6;  // of a factor that somebody wrote down
    const double factor = std::round(kDigits * entry["radius_chord"].get<double>() / spacing);
    return {{"class", "CutOffEdges"}, {"cutoff_factor", factor / kDigits}};
  }
  return {{"class", "KNNEdges"},
          {"num_nearest_neighbours", count / std::max<int64_t>(1, target.set.num_nodes())}};
}

void compare_graph(Comparison& comparison, const Json& json) {
  const auto coordinates =
      graph::gaussian_coordinates(graph::parse_gaussian_grid(json.at("grid").get<std::string>()));
  CaseNodes data;
  data.set = {"data",
              graph::radians_from_degrees(coordinates.lat_deg),
              graph::radians_from_degrees(coordinates.lon_deg),
              {}};
  const auto refinement = json.at("refinement").get<int64_t>();
  const CaseNodes hidden = make_tri_nodes("hidden", graph::tri_nodes(refinement));
  compare_reference_distance(comparison, data, json.at("grid_reference_distance_chord").at("data"));
  compare_reference_distance(comparison, hidden,
                             json.at("grid_reference_distance_chord").at("hidden"));
  comparison.add("sum of longitudes",
                 relative(sum(data.set.lon_rad),
                          json.at("data_coordinates").at("sum_longitude").get<double>()),
                 1e-9);
  compare_node_values(comparison, json, data, hidden);
  for (const auto& [name, entry] : json.at("edges").items()) {
    const CaseNodes& source = name.starts_with("data") ? data : hidden;
    const CaseNodes& target = name.ends_with("data") ? data : hidden;
    compare_edge_set(
        comparison, name, entry,
        build_edges(Json::array({builder_of(json, name, source, target)}), source, target).edges,
        source, target);
  }
}

void compare_meshes(Comparison& comparison, const Json& json) {
  std::map<std::string, CaseNodes> nodes;
  for (const auto& [name, entry] : json.at("nodes").items()) {
    const Json& builder = entry.at("builder");
    if (class_name(builder) != "TriNodes")
      throw NotSupported("nodes of class " + class_name(builder));
    nodes[name] = make_tri_nodes(name, graph::tri_nodes(builder.at("resolution").get<int64_t>()));
  }
  for (const auto& [name, entry] : json.at("edges").items()) {
    const size_t middle = name.find("_to_");
    const CaseNodes& source = nodes.at(name.substr(0, middle));
    const CaseNodes& target = nodes.at(name.substr(middle + 4));
    compare_edge_set(comparison, name, entry,
                     build_edges(Json::array({entry.at("builder")}), source, target).edges, source,
                     target);
  }
}

}  // namespace

void run_graph_summary(const CaseFile& file, Report& report) {
  for (const auto& [name, json] : file.json.at("graphs").items()) {
    report.run("graph", concat(file.name, "/", name),
               [&json = json](Comparison& comparison) { compare_graph(comparison, json); });
  }
  for (const auto& [name, json] : file.json.at("meshes").items()) {
    report.run("graph", concat(file.name, "/", name),
               [&json = json](Comparison& comparison) { compare_meshes(comparison, json); });
  }
}

}  // namespace aifs::conformance
