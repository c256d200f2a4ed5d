// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "app/conformance/graph_builder_cases.h"
#include "app/conformance/graph_compare.h"
#include "graph/area_mask.h"
#include "graph/gaussian_grid.h"
#include "graph/healpix.h"
#include "graph/neighbour_edges.h"

namespace aifs::conformance {

namespace {

constexpr double kCoordinateLimit = 1e-6;

graph::NodeSet radians(const graph::Coordinates& degrees, graph::DegreeArithmetic arithmetic) {
  return {"ours",
          graph::radians_from_degrees(degrees.lat_deg, arithmetic),
          graph::radians_from_degrees(degrees.lon_deg, arithmetic),
          {}};
}

// The global points that all coordinate cases share.
graph::Coordinates input_coordinates(const SafetensorsFile& tensors) {
  return {tensors.doubles("input/global_latitude_deg"),
          tensors.doubles("input/global_longitude_deg")};
}

// The area around the reference nodes of the limited-area cases.
graph::AreaMask area_mask(const Json& builder, const SafetensorsFile& tensors) {
  if (value_or<std::string>(builder, "reference_node_name", "") != "ref") {
    throw Error("unknown reference nodes");
  }
  graph::Coordinates reference{tensors.doubles("input/lam_latitude_deg"),
                               tensors.doubles("input/lam_longitude_deg")};
  if (builder.contains("mask_attr_name")) {
    const auto mask = tensors.integers("input/lam_mask");
    graph::Coordinates kept;
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      kept.lat_deg.push_back(reference.lat_deg[i]);
      kept.lon_deg.push_back(reference.lon_deg[i]);
    }
    reference = kept;
  }
  const auto nodes = radians(reference, graph::DegreeArithmetic::kFloat64);
  return graph::AreaMask(nodes.lat_rad, nodes.lon_rad,
                         value_or(builder, "margin_radius_km", 100.0));
}

graph::NodeSet inside(const graph::AreaMask& area, const graph::NodeSet& nodes) {
  const auto mask = area.inside(nodes.lat_rad, nodes.lon_rad);
  graph::NodeSet kept{nodes.name, {}, {}, {}};
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) continue;
    kept.lat_rad.push_back(nodes.lat_rad[i]);
    kept.lon_rad.push_back(nodes.lon_rad[i]);
  }
  return kept;
}

int64_t finest_level(const Json& resolution) {
  if (resolution.is_number()) return resolution.get<int64_t>();
  int64_t finest = 0;
  for (const Json& level : resolution)
    finest = std::max(finest, level.get<int64_t>());
  return finest;
}

// Nodes of an icosahedral mesh, or nothing for another class.
std::optional<graph::TriNodes> mesh_nodes(const Json& builder, const SafetensorsFile& tensors) {
  const std::string name = class_name(builder);
  if (name == "TriNodes") return graph::tri_nodes(finest_level(builder.at("resolution")));
  if (name == "LimitedAreaTriNodes") {
    return graph::limited_area_tri_nodes(finest_level(builder.at("resolution")),
                                         area_mask(builder, tensors));
  }
  if (name == "StretchedTriNodes") {
    return graph::stretched_tri_nodes(builder.at("global_resolution").get<int64_t>(),
                                      builder.at("lam_resolution").get<int64_t>(),
                                      area_mask(builder, tensors));
  }
  return std::nullopt;
}

// Nodes whose order is defined.
graph::NodeSet ordered_nodes(const std::string& case_name, const Json& builder,
                             const SafetensorsFile& tensors) {
  const std::string name = class_name(builder);
  if (name == "HEALPixNodes" || name == "LimitedAreaHEALPixNodes") {
    const auto nodes = radians(graph::healpix_coordinates(builder.at("resolution").get<int64_t>()),
                               graph::DegreeArithmetic::kFloat64);
    return name == "HEALPixNodes" ? nodes : inside(area_mask(builder, tensors), nodes);
  }
  if (name == "ReducedGaussianGridNodes") {
    const auto grid = graph::parse_gaussian_grid(builder.at("grid").get<std::string>());
    if (grid.kind == graph::GaussianKind::kRegular) throw Error("regular grids are not reduced");
    return radians(graph::gaussian_coordinates(grid), graph::DegreeArithmetic::kFloat64);
  }
  if (name == "AnemoiDatasetNodes") {
    return radians(input_coordinates(tensors), graph::DegreeArithmetic::kFloat64);
  }
  if (name == "LatLonNodes") {
    return radians(input_coordinates(tensors), case_name.find("list") != std::string::npos
                                                   ? graph::DegreeArithmetic::kFloat32
                                                   : graph::DegreeArithmetic::kFloat64);
  }
  throw NotSupported(concat("nodes of class ", name));
}

void compare_mesh(Comparison& comparison, const SafetensorsFile& tensors, const std::string& name,
                  const Json& json, const graph::TriNodes& mesh) {
  const graph::NodeSet ours{"ours", mesh.lat_rad, mesh.lon_rad, {}};
  const auto stored = read_node_set(tensors, name + "/latlon_rad", name);
  const auto number = match_nodes(ours, stored, kCoordinateLimit);
  const auto vertex = tensors.integers(name + "/mesh_index_of_node");
  int64_t different = 0;
  double most = 0.0;
  for (size_t i = 0; i < number.size(); ++i) {
    const auto theirs = static_cast<size_t>(number[i]);
    if (vertex[theirs] != mesh.vertex[i]) ++different;
    most = std::max(most, std::abs(static_cast<double>(stored.lat_rad[theirs]) - ours.lat_rad[i]));
  }
  comparison.require(different == 0, concat(different, " nodes are other vertices of the mesh"));
  comparison.add("latitudes", most, kCoordinateLimit);
  if (json.contains("default_levels")) {
    CaseNodes nodes = make_tri_nodes("ours", mesh);
    const Json& resolution = json.at("builder").value("resolution", Json());
    if (resolution.is_array()) nodes.default_levels = resolution.get<std::vector<int64_t>>();
    comparison.require(nodes.default_levels == json["default_levels"].get<std::vector<int64_t>>(),
                       "other default levels");
  }
}

void compare_reference_distance(Comparison& comparison, const Json& json,
                                const graph::NodeSet& nodes) {
  const Json distance = json.value("grid_reference_distance_chord", Json());
  if (distance.is_null()) return;
  comparison.add("reference distance",
                 std::abs(graph::reference_distance(nodes, 1) - distance.get<double>()), 1e-7);
}

void run_node_case(Comparison& comparison, const SafetensorsFile& tensors, const std::string& name,
                   const Json& json) {
  const Json& builder = json.at("builder");
  if (const auto mesh = mesh_nodes(builder, tensors)) {
    compare_mesh(comparison, tensors, name, json, *mesh);
    compare_reference_distance(comparison, json, {"ours", mesh->lat_rad, mesh->lon_rad, {}});
    return;
  }
  const graph::NodeSet ours = ordered_nodes(name, builder, tensors);
  compare_coordinates(comparison, name, ours, read_node_set(tensors, name + "/latlon_rad", name),
                      kCoordinateLimit);
  compare_reference_distance(comparison, json, ours);
}

}  // namespace

void run_node_builder_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("nodes", name, [&, &name = name, &json = json](Comparison& comparison) {
      run_node_case(comparison, tensors, name, json);
    });
  }
  const Json refused = value_or(file.json, "refused_or_failed", Json::object());
  for (const auto& [name, json] : refused.items()) {
    report.run("nodes", "refused: " + name, [&, &json = json](Comparison& comparison) {
      require_error(comparison, [&] {
        const Json& builder = json.at("builder");
        if (!mesh_nodes(builder, tensors)) ordered_nodes("", builder, tensors);
      });
    });
  }
}

}  // namespace aifs::conformance
