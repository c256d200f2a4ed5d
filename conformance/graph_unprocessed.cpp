// SPDX-License-Identifier: Apache-2.0
#include "conformance/graph_unprocessed.h"

#include <algorithm>

#include "conformance/graph_builder_cases.h"
#include "conformance/graph_compare.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/healpix.h"
#include "graph/nodes/icosphere.h"

namespace aifs::conformance {

namespace {

constexpr const char* kPlaces = "latlon_rad";
constexpr const char* kDegrees = "_latlon_deg";

// Post-processors that take nodes away.
bool removes_nodes(const Json& processor, const std::string& name) {
  const auto found = processor.find("nodes_name");
  if (found == processor.end()) return false;
  if (found->is_string()) return found->get<std::string>() == name;
  return std::any_of(found->begin(), found->end(),
                     [&](const Json& entry) { return entry.get<std::string>() == name; });
}

// The builder of a set in a "nodes" object: {"<name>": {"node_builder": {"class": ...}}}.
const Json* builder_in(const Json& json, const std::string& name) {
  const auto nodes = json.find("nodes");
  if (nodes == json.end() || !nodes->is_object() || !nodes->contains(name)) return nullptr;
  for (const char* key : {"node_builder", "builder"}) {
    const Json& entry = (*nodes)[name];
    if (entry.is_object() && entry.contains(key)) return &entry[key];
  }
  return nullptr;
}

graph::NodeSet from_degrees(const std::string& name, const graph::Coordinates& degrees,
                            graph::DegreeArithmetic arithmetic) {
  return {name,
          graph::radians_from_degrees(degrees.lat_deg, arithmetic),
          graph::radians_from_degrees(degrees.lon_deg, arithmetic),
          {}};
}

CaseNodes with_mesh(graph::NodeSet set) {
  auto mesh = recognise_mesh(set);
  if (mesh) return make_tri_nodes(set.name, std::move(*mesh));
  CaseNodes nodes;
  nodes.set = std::move(set);
  return nodes;
}

}  // namespace

const CaseNodes& UnprocessedNodes::nodes(const std::string& name) const {
  const auto known = sets_.find(name);
  if (known != sets_.end()) return known->second;
  CaseNodes nodes = found(name);
  add_attributes(name, nodes);
  return sets_[name] = std::move(nodes);
}

std::vector<std::string> UnprocessedNodes::input_sets() const {
  const std::string start = "input/", end = kDegrees;
  std::vector<std::string> names;
  for (const auto& [tensor, entry] : tensors_.entries()) {
    if (tensor.starts_with(start) && tensor.ends_with(end))
      names.push_back(tensor.substr(start.size(), tensor.size() - start.size() - end.size()));
  }
  return names;
}

CaseNodes UnprocessedNodes::found(const std::string& name) const {
  const std::string input = concat("input/", name, kDegrees);
  if (tensors_.contains(input)) {  // given as lists, hence the arithmetic
    return with_mesh(
        from_degrees(name, read_degrees(tensors_, input), graph::DegreeArithmetic::kFloat32));
  }
  if (const std::string place = whole_in(name); !place.empty())
    return with_mesh(read_node_set(tensors_, place + kPlaces, name));
  return built(name);
}

std::string UnprocessedNodes::whole_in(const std::string& name) const {
  std::string kept_all;
  for (const auto& [id, json] : file_.json.at("cases").items()) {
    const std::string place = concat(id, "/nodes/", name, "/");
    const auto processors = json.find("post_processors");
    if (processors == json.end() || !tensors_.contains(place + kPlaces)) continue;
    if (processors->empty()) return place;
    const bool removes =
        std::any_of(processors->begin(), processors->end(),
                    [&](const Json& processor) { return removes_nodes(processor, name); });
    if (!removes && kept_all.empty()) kept_all = place;
  }
  return kept_all;
}

CaseNodes UnprocessedNodes::built(const std::string& name) const {
  const Json* builder = builder_in(file_.json, name);
  if (!builder && file_.json.contains("recipe")) builder = builder_in(file_.json["recipe"], name);
  for (const Json& json : file_.json.at("cases")) {
    if (!builder) builder = builder_in(json, name);
  }
  if (!builder) throw NotSupported(concat("nodes '", name, "' that no case has whole"));
  const std::string kind = class_name(*builder);
  CaseNodes nodes;
  if (kind == "TriNodes")
    return make_tri_nodes(name, graph::tri_nodes(builder->at("resolution").get<int64_t>()));
  if (kind == "HEALPixNodes") {
    nodes.healpix_resolution = builder->at("resolution").get<int64_t>();
    nodes.set = from_degrees(name, graph::healpix_coordinates(nodes.healpix_resolution),
                             graph::DegreeArithmetic::kFloat64);
    return nodes;
  }
  if (kind == "ReducedGaussianGridNodes") {
    const auto grid = graph::parse_gaussian_grid(builder->at("grid").get<std::string>());
    nodes.set =
        from_degrees(name, graph::gaussian_coordinates(grid), graph::DegreeArithmetic::kFloat64);
    return nodes;
  }
  throw NotSupported(concat("nodes of class ", kind));
}

void UnprocessedNodes::add_attributes(const std::string& name, CaseNodes& nodes) const {
  const auto add = [&](const std::string& start) {
    for (const auto& [tensor, entry] : tensors_.entries()) {
      if (!tensor.starts_with(start) || entry.shape.at(0) != nodes.set.num_nodes()) continue;
      const std::string attribute = tensor.substr(start.size());
      if (attribute != kPlaces && attribute.find("latlon") == std::string::npos)
        nodes.set.attributes[attribute] = read_attribute(tensors_, tensor);
    }
  };
  if (const std::string place = whole_in(name); !place.empty()) add(place);
  add(concat("input/", name, "_"));
  // Areas are computed; their norm is a common factor, known from the largest of them.
  const auto areas = nodes.set.attributes.find("area_weight");
  if (areas == nodes.set.attributes.end() || areas->second.values.empty()) return;
  std::vector<float>& stored = areas->second.values;
  const float most = *std::max_element(stored.begin(), stored.end());
  stored = node_attribute<float>({{"class", "SphericalAreaWeights"}, {"norm", "unit-max"}},
                                 nodes.set, {});
  for (float& weight : stored)
    weight *= most;
}

}  // namespace aifs::conformance
