// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <regex>

#include "conformance/graph_builder_cases.h"
#include "conformance/graph_compare.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/nodes/area_mask.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/healpix.h"

namespace aifs::conformance {

namespace {

graph::NodeSet radians(const graph::Coordinates& degrees, graph::DegreeArithmetic arithmetic) {
  return {"ours",
          graph::radians_from_degrees(degrees.lat_deg, arithmetic),
          graph::radians_from_degrees(degrees.lon_deg, arithmetic),
          {}};
}

// Coordinates that the cases of a file share: input/<name>_latitude_deg and _longitude_deg, with
// input/<name>_mask for some.
class SharedInputs {
 public:
  SharedInputs(const CaseFile& file, const SafetensorsFile& tensors) : tensors_(tensors) {
    const std::string start = "input/", end = "_latitude_deg";
    for (const auto& [tensor, entry] : tensors.entries()) {
      if (tensor.starts_with(start) && tensor.ends_with(end))
        names_.push_back(tensor.substr(start.size(), tensor.size() - start.size() - end.size()));
    }
    for (const Json& one : file.json.at("cases")) {
      const auto name =
          value_or<std::string>(one.value("builder", Json::object()), "reference_node_name", "");
      if (!name.empty()) reference_names_.push_back(name);
    }
  }

  // The points of a case: its own, else those of so many nodes.
  graph::Coordinates points(const std::string& case_name, int64_t num_nodes) const {
    const std::string own = case_name + "/input/";
    if (tensors_.contains(own + "latitude_deg"))
      return {tensors_.doubles(own + "latitude_deg"), tensors_.doubles(own + "longitude_deg")};
    for (const std::string& name : names_) {
      graph::Coordinates points = named(name);
      if (static_cast<int64_t>(points.lat_deg.size()) == num_nodes) return points;
    }
    throw NotSupported("coordinates that the file does not hold");
  }

  // The reference nodes of a limited area: those that a mask belongs to, else the first that are
  // not global.
  graph::Coordinates reference(const std::string& name, bool masked) const {
    if (std::find(reference_names_.begin(), reference_names_.end(), name) ==
        reference_names_.end()) {
      throw Error("unknown reference nodes");
    }
    const auto mask_of = [](const std::string& input) { return concat("input/", input, "_mask"); };
    auto chosen = std::find_if(names_.begin(), names_.end(), [&](const std::string& input) {
      return tensors_.contains(mask_of(input));
    });
    if (chosen == names_.end())
      chosen = std::find_if(names_.begin(), names_.end(),
                            [](const std::string& input) { return input != "global"; });
    if (chosen == names_.end()) throw NotSupported("a limited area without reference nodes");
    const graph::Coordinates all = named(*chosen);
    if (!masked) return all;
    const auto mask = tensors_.integers(mask_of(*chosen));
    graph::Coordinates kept;
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      kept.lat_deg.push_back(all.lat_deg[i]);
      kept.lon_deg.push_back(all.lon_deg[i]);
    }
    return kept;
  }

 private:
  graph::Coordinates named(const std::string& name) const {
    return {tensors_.doubles(concat("input/", name, "_latitude_deg")),
            tensors_.doubles(concat("input/", name, "_longitude_deg"))};
  }

  const SafetensorsFile& tensors_;
  std::vector<std::string> names_;
  std::vector<std::string> reference_names_;  // what cases that are not refused call them
};

// The area around the reference nodes of the limited-area cases.
graph::AreaMask area_mask(const Json& builder, const SharedInputs& inputs) {
  const auto nodes =
      radians(inputs.reference(value_or<std::string>(builder, "reference_node_name", ""),
                               builder.contains("mask_attr_name")),
              graph::DegreeArithmetic::kFloat64);
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
std::optional<graph::TriNodes> mesh_nodes(const Json& builder, const SharedInputs& inputs) {
  const std::string name = class_name(builder);
  if (name == "TriNodes") return graph::tri_nodes(finest_level(builder.at("resolution")));
  if (name == "LimitedAreaTriNodes") {
    return graph::limited_area_tri_nodes(finest_level(builder.at("resolution")),
                                         area_mask(builder, inputs));
  }
  if (name == "StretchedTriNodes") {
    return graph::stretched_tri_nodes(builder.at("global_resolution").get<int64_t>(),
                                      builder.at("lam_resolution").get<int64_t>(),
                                      area_mask(builder, inputs));
  }
  return std::nullopt;
}

// Python lists become float32 degrees before they become radians, arrays do not.
bool is_list(const Json& builder, const Json& json) {
  static const std::regex kLists("\\blists?\\b[^.;]*\\bfloat32\\b");
  return builder.contains("latitudes") ||
         std::regex_search(json.value("note", std::string()), kLists);
}

// Nodes whose order is defined.
graph::NodeSet ordered_nodes(const std::string& case_name, const Json& json,
                             const SharedInputs& inputs) {
  using Arithmetic = graph::DegreeArithmetic;
  const Json& builder = json.at("builder");
  const std::string name = class_name(builder);
  if (name == "HEALPixNodes" || name == "LimitedAreaHEALPixNodes") {
    const auto nodes = radians(graph::healpix_coordinates(builder.at("resolution").get<int64_t>()),
                               Arithmetic::kFloat64);
    return name == "HEALPixNodes" ? nodes : inside(area_mask(builder, inputs), nodes);
  }
  if (name == "ReducedGaussianGridNodes") {
    const auto grid = graph::parse_gaussian_grid(builder.at("grid").get<std::string>());
    if (grid.kind == graph::GaussianKind::kRegular) throw Error("regular grids are not reduced");
    return radians(graph::gaussian_coordinates(grid), Arithmetic::kFloat64);
  }
  if (name == "AnemoiDatasetNodes" || name == "LatLonNodes") {
    const bool single = name == "LatLonNodes" && is_list(builder, json);
    const Json count = json.value("nodes", Json());
    return radians(inputs.points(case_name, count.is_number() ? count.get<int64_t>() : 0),
                   single ? Arithmetic::kFloat32 : Arithmetic::kFloat64);
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

void check_refused(Comparison& comparison, const SharedInputs& inputs, const std::string& name,
                   const Json& json) {
  require_described(json);
  require_error(comparison, [&] {
    if (!mesh_nodes(json.at("builder"), inputs)) ordered_nodes(name, json, inputs);
  });
}

void run_node_case(Comparison& comparison, const SafetensorsFile& tensors,
                   const SharedInputs& inputs, const std::string& name, const Json& json) {
  require_described(json);
  if (package_refuses(json, "nodes")) return check_refused(comparison, inputs, name, json);
  if (const auto mesh = mesh_nodes(json.at("builder"), inputs)) {
    compare_mesh(comparison, tensors, name, json, *mesh);
    compare_reference_distance(comparison, json, {"ours", mesh->lat_rad, mesh->lon_rad, {}});
    return;
  }
  const graph::NodeSet ours = ordered_nodes(name, json, inputs);
  compare_coordinates(comparison, name, ours, read_node_set(tensors, name + "/latlon_rad", name),
                      kCoordinateLimit);
  compare_reference_distance(comparison, json, ours);
}

}  // namespace

void run_node_builder_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  const SharedInputs inputs(file, tensors);
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("nodes", name, [&, &name = name, &json = json](Comparison& comparison) {
      run_node_case(comparison, tensors, inputs, name, json);
    });
  }
  const Json refused = value_or(file.json, "refused_or_failed", Json::object());
  for (const auto& [name, json] : refused.items()) {
    report.run("nodes", "refused: " + name,
               [&, &name = name, &json = json](Comparison& comparison) {
                 check_refused(comparison, inputs, name, json);
               });
  }
}

}  // namespace aifs::conformance
