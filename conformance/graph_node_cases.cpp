// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "conformance/graph_builder_cases.h"
#include "conformance/graph_compare.h"
#include "conformance/icon_case.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/nodes/file_kinds.h"

namespace aifs::conformance {

namespace {

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

  // True for a name that cases which are not refused give to the nodes around which an area lies.
  bool is_reference(const std::string& name) const {
    return std::find(reference_names_.begin(), reference_names_.end(), name) !=
           reference_names_.end();
  }
  // The reference nodes of a limited area: those that a mask belongs to, else the first that are
  // not global.
  graph::Coordinates reference(bool masked) const {
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

// Python lists become float32 degrees before they become radians, arrays do not.
bool is_list(const Json& builder, const Json& json) {
  static const std::regex kLists("\\blists?\\b[^.;]*\\bfloat32\\b");
  return builder.contains("latitudes") ||
         std::regex_search(json.value("note", std::string()), kLists);
}

graph::MeshNodes icon_nodes_of(const Json& builder, const SafetensorsFile& tensors) {
  const auto options = options_of_part<graph::NodeSetOptions>(anemoi::GraphPart::kNodes, builder);
  const auto mesh = read_icon_mesh(tensors, "global");
  if (!mesh) throw NotSupported("an ICON grid that the file does not hold");
  const auto& kind = dynamic_cast<const graph::IconKind&>(*options.kind);
  const bool cells = options.kind.as<graph::IconCellsKind>() != nullptr;
  return graph::icon_nodes("ours",
                           {mesh, cells ? graph::IconPart::kCells : graph::IconPart::kVertices,
                            kind.max_level.value_or(mesh->finest_level())});
}

// The nodes of a case, made by the options that its builder becomes.
graph::MeshNodes nodes_of(const std::string& case_name, const Json& json,
                          const SharedInputs& inputs, const SafetensorsFile& tensors) {
  static const std::set<std::string> kFiles{"NPZFileNodes", "LimitedAreaNPZFileNodes", "TextNodes",
                                            "XArrayNodes"};
  Json builder = json.at("builder");
  const std::string name = class_name(builder);
  if (name.starts_with("ICON")) return icon_nodes_of(builder, tensors);
  if (kFiles.count(name) > 0) throw NotSupported("a file that the case does not hold");
  const Json count = json.value("nodes", Json());
  graph::Coordinates points;
  if (name == "AnemoiDatasetNodes" || name == "LatLonNodes")
    points = inputs.points(case_name, count.is_number() ? count.get<int64_t>() : 0);
  const bool as_list = is_list(builder, json);
  if (name == "LatLonNodes") {
    builder["latitudes"] = points.lat_deg;
    builder["longitudes"] = points.lon_deg;
    builder.erase("input");
  }
  auto options = options_of_part<graph::NodeSetOptions>(anemoi::GraphPart::kNodes, builder);
  if (const auto* lists = options.kind.as<graph::LatLonKind>(); lists && !as_list) {
    graph::LatLonKind arrays = *lists;
    arrays.coordinates = graph::DegreeArithmetic::kFloat64;
    options.kind.set(arrays);
  }
  std::map<std::string, graph::MeshNodes> before;
  if (const auto reference = value_or<std::string>(builder, "reference_node_name", "");
      inputs.is_reference(reference)) {
    const auto mask = value_or<std::string>(builder, "mask_attr_name", "");
    const graph::Coordinates around = inputs.reference(!mask.empty());
    graph::MeshNodes& nodes = before[reference];
    nodes.set = {reference,
                 graph::radians_from_degrees(around.lat_deg),
                 graph::radians_from_degrees(around.lon_deg),
                 {}};
    nodes.set.attributes[mask] = {1, std::vector<float>(around.lat_deg.size(), 1.0F)};
  }
  return options.kind->make({.path = "part", .name = "ours", .before = before, .cells = &points});
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

void check_refused(Comparison& comparison, const SharedInputs& inputs,
                   const SafetensorsFile& tensors, const std::string& name, const Json& json) {
  require_described(json);
  require_error(comparison, [&] { nodes_of(name, json, inputs, tensors); });
}

void run_node_case(Comparison& comparison, const SafetensorsFile& tensors,
                   const SharedInputs& inputs, const std::string& name, const Json& json) {
  require_described(json);
  if (package_refuses(json, "nodes")) return check_refused(comparison, inputs, tensors, name, json);
  const graph::MeshNodes ours = nodes_of(name, json, inputs, tensors);
  if (ours.tri) {
    compare_mesh(comparison, tensors, name, json, *ours.tri);
  } else {
    compare_coordinates(comparison, name, ours.set,
                        read_node_set(tensors, name + "/latlon_rad", name), kCoordinateLimit);
  }
  compare_reference_distance(comparison, json, ours.set);
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
                 check_refused(comparison, inputs, tensors, name, json);
               });
  }
}

}  // namespace aifs::conformance
