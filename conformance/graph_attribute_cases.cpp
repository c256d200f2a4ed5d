// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <regex>
#include <sstream>

#include "conformance/graph_builder_cases.h"
#include "conformance/graph_compare.h"
#include "conformance/limits.h"
#include "graph/weights/planar_weights.h"

namespace aifs::conformance {

namespace {

using graph::Norm;

// An edge list with its nodes, read from the file. The sets are those that the file names, or the
// only one or two that there are, in the order of their names.
struct EdgeListCase {
  graph::NodeSet source, target;
  graph::EdgeList edges;

  EdgeListCase(const CaseFile& file, const SafetensorsFile& tensors)
      : edges(read_edge_list(tensors, "edge_index")) {
    std::vector<std::string> names;
    for (const auto& [tensor, entry] : tensors.entries()) {
      const std::string start = "nodes/", end = "/latlon_rad";
      if (tensor.starts_with(start) && tensor.ends_with(end))
        names.push_back(tensor.substr(start.size(), tensor.size() - start.size() - end.size()));
    }
    if (names.empty()) throw DataError("the file holds no nodes");
    const auto set = [&](const char* side, const std::string& otherwise) {
      const auto name = value_or(file.json, side, otherwise);
      return read_node_set(tensors, concat("nodes/", name, "/latlon_rad"), name);
    };
    source = set("source", names.front());
    target = set("target", names.size() > 1 ? names[1] : names.front());
  }
  graph::EdgeEnds ends() const {
    return {source, target, edges.source_index, edges.target_index, 1};
  }
};

bool is_directional(const Json& attribute) {
  return class_name(attribute) == "EdgeDirection" ||
         class_name(attribute) == "DirectionalHarmonics";
}

// Edges that end at a pole, where float64 runs of the reference take another branch.
std::vector<bool> ends_at_pole(const EdgeListCase& list) {
  std::vector<bool> at_pole;
  for (const int32_t target : list.edges.target_index)
    at_pole.push_back(std::abs(list.target.lat_rad[static_cast<size_t>(target)]) > 1.570796F);
  return at_pole;
}

// ln(1 + v) is steep at v = -1 and nothing beyond: compare v.
void undo_log1p(Values<float>& values) {
  for (float& value : values.rows)
    value = std::expm1(value);
}

// The norm that an attribute has, also if it is that of its class.
Norm effective_norm(const Json& attribute) {
  const std::string name = class_name(attribute);
  const bool grouped = name == "RadialBasisFeatures" || name == "GaussianDistanceWeights";
  return norm_of(attribute, grouped ? Norm::kL1 : Norm::kNone);
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double value : values)
    most = std::max(most, std::abs(value));  // NaN is passed over
  return most;
}

void compare_float32(Comparison& comparison, const SafetensorsFile& tensors,
                     const std::string& name, const Json& json, const EdgeListCase& list) {
  const Json& attribute = json.at("attribute");
  Values<float> values = edge_attribute<float>(attribute, list.ends());
  const Norm norm = effective_norm(attribute);
  const double raw_limit =
      raw_attribute_limit(class_name(attribute), value_or<int64_t>(attribute, "order", 3));
  const Json spread = json.value("float32_vs_float64", Json::object()).value("max_abs", Json());
  const std::vector<double> stored = tensors.doubles(name);
  if (norm == Norm::kLog1p && (is_directional(attribute) || !spread.is_number())) {
    undo_log1p(values);
    double most = 0.0;
    for (size_t i = 0; i < stored.size(); ++i) {
      const double difference =
          std::abs(static_cast<double>(values.rows[i]) - std::expm1(stored[i]));
      if (difference > most) most = difference;
    }
    comparison.add(name, most, raw_limit);
    return;
  }
  const double own_error = spread.is_number() ? spread.get<double>() : 0.0;
  const bool by_spread = norm != Norm::kNone && spread.is_number();
  comparison.add(name, largest_difference(values, tensors, name, [](size_t) { return true; }),
                 by_spread ? spread_limit(own_error, largest(stored)) : raw_limit, own_error);
}

void compare_float64(Comparison& comparison, const SafetensorsFile& tensors,
                     const std::string& name, const Json& json, const EdgeListCase& list) {
  const std::string tensor = "f64/" + name;
  if (!tensors.contains(tensor)) return;
  const Json& attribute = json.at("attribute");
  const auto at_pole = ends_at_pole(list);
  const bool turned =
      is_directional(attribute) && std::find(at_pole.begin(), at_pole.end(), true) != at_pole.end();
  const Norm norm = norm_of(attribute, Norm::kNone);
  // Turned edges enter the statistics of norms.
  const bool spoilt = turned && norm != Norm::kNone && norm != Norm::kLog1p;
  const Values<double> values = edge_attribute<double>(attribute, list.ends());
  comparison.add(
      tensor,
      largest_difference(values, tensors, tensor, [&](size_t e) { return !turned || !at_pole[e]; }),
      spoilt                ? 1e-1
      : norm == Norm::kNone ? 1e-12
                            : 1e-11);
}

// AttributeFromSourceNode/<name> and AttributeFromTargetNode/<name>.
void compare_copy(Comparison& comparison, const SafetensorsFile& tensors, const std::string& tensor,
                  const EdgeListCase& list) {
  const bool is_source = tensor.starts_with("AttributeFromSource");
  const std::string name = tensor.substr(tensor.find('/') + 1);
  EdgeListCase with_attribute = list;
  graph::NodeSet& nodes = is_source ? with_attribute.source : with_attribute.target;
  nodes.attributes[name] = read_attribute(tensors, concat("nodes/", nodes.name, "/", name));
  const auto copied = edge_attribute<float>(
      {{"class", is_source ? "AttributeFromSourceNode" : "AttributeFromTargetNode"},
       {"node_attr_name", name}},
      with_attribute.ends());
  comparison.require(copied.rows == read_attribute(tensors, tensor).values, tensor + " differs");
}

// The norms of a list of one edge, whose length follows from log1p.
void compare_one_edge(Comparison& comparison, const std::string& name, const Json& cases) {
  const std::string wanted = name.substr(name.find('/') + 1);
  const Json& stored = cases.at(name).at("value").at(0);
  if (stored.is_null()) throw NotSupported("a deviation of one value (NaN in the reference)");
  const double length = std::expm1(cases.at("one_edge/log1p").at("value").at(0).get<double>());
  std::vector<double> values{length};
  graph::normalise(norm_of({{"norm", wanted}}, Norm::kNone), values);
  comparison.add(name, std::abs(values[0] - stored.get<double>()), 1e-6);
}

Json with_norm(Json attribute, const std::string& norm) {
  attribute["norm"] = norm == "None" ? Json() : Json(norm);
  return attribute;
}

// The attribute of `<set>/<attribute>/<norm>`: its options stand in a case with the same or, most
// often, another norm.
Json attribute_of(const Json& cases, const std::string& set, const std::string& attribute,
                  const std::string& norm) {
  const std::string start = concat(set, "/", attribute, "/");
  for (const auto& [name, json] : cases.items()) {
    const bool same = name.starts_with(start) && name.find('/', start.size()) == std::string::npos;
    if (same && json.is_object() && json.contains("attribute"))
      return with_norm(json["attribute"], norm);
  }
  return with_norm(Json{{"class", attribute}}, norm);
}

bool is_cell_area(const std::string& name) {
  return name.find("AreaWeights") != std::string::npos && !name.starts_with("Isolatitude");
}

void compare_node_weights(Comparison& comparison, const SafetensorsFile& tensors,
                          const std::string& tensor, const Json& attribute,
                          const graph::NodeSet& nodes) {
  const auto raw = node_attribute<float>(with_norm(attribute, "None"), nodes, {});
  const auto [least, most] = std::minmax_element(raw.begin(), raw.end());
  if (attribute["norm"] == "unit-std" && *most - *least < 1e-6F * *most) {
    throw NotSupported("dividing by a deviation that is rounding noise");
  }
  // One unit in the last place, but the sums of norms may take another order.
  const double limit = is_cell_area(class_name(attribute)) ? 1e-6
                       : attribute["norm"].is_null()       ? 1.2e-7
                                                           : 5e-7;
  const std::string twin = "f64/" + tensor;
  const bool has_twin = tensors.contains(twin);
  const double own_error =
      has_twin ? largest_relative_difference(tensors.doubles(tensor), tensors, twin) : 0.0;
  comparison.add(
      tensor,
      largest_relative_difference(node_attribute<float>(attribute, nodes, {}), tensors, tensor),
      limit, own_error);
  if (!has_twin) return;
  comparison.add(
      twin,
      largest_relative_difference(node_attribute<double>(attribute, nodes, {}), tensors, twin),
      is_cell_area(class_name(attribute)) ? 1e-6 : 1e-12);
}

void compare_own_cells(Comparison& comparison, const SafetensorsFile& tensors,
                       const std::string& set, const graph::NodeSet& nodes) {
  const std::string tensor = set + "/PlanarAreaWeights/cell_is_own";
  if (!tensors.contains(tensor)) return;
  const auto own = graph::planar_weights(nodes.lat_rad, nodes.lon_rad, 1).own_cell;
  const auto stored = tensors.integers(tensor);
  comparison.require(std::equal(own.begin(), own.end(), stored.begin(), stored.end()),
                     "other nodes have cells of their own");
}

// The mask that an attribute names: the tensor <set>/<name>, or the one whose name begins so
// ("m", "mask").
void add_mask(const SafetensorsFile& tensors, const std::string& set, const Json& attribute,
              graph::NodeSet& nodes) {
  const auto name = value_or<std::string>(attribute, "mask_node_attr_name", "");
  if (name.empty() || nodes.attributes.contains(name)) return;
  const std::string start = concat(set, "/", name);
  for (const auto& [tensor, entry] : tensors.entries()) {
    const bool of_set =
        tensor.starts_with(start) && tensor.find('/', set.size() + 1) == std::string::npos;
    if (!of_set || entry.shape.at(0) != nodes.num_nodes()) continue;
    nodes.attributes[name] = read_attribute(tensors, tensor);
    return;
  }
}

void run_node_weights(const CaseFile& file, const SafetensorsFile& tensors, const std::string& set,
                      Report& report) {
  graph::NodeSet nodes = read_node_set(tensors, set + "/latlon_rad", set);
  for (const auto& [tensor, entry] : tensors.entries()) {
    if (!tensor.starts_with(set + "/") || entry.dtype != DType::kF32) continue;
    const size_t norm_at = tensor.rfind('/');
    if (norm_at <= set.size()) continue;  // coordinates and masks
    const std::string name = tensor.substr(set.size() + 1, norm_at - set.size() - 1);
    if (name == "input") continue;
    const Json attribute =
        attribute_of(file.json.at("cases"), set, name, tensor.substr(norm_at + 1));
    report.run("node attribute", tensor, [&, &tensor = tensor](Comparison& comparison) {
      add_mask(tensors, set, attribute, nodes);
      compare_node_weights(comparison, tensors, tensor, attribute, nodes);
      if (name == "PlanarAreaWeights") compare_own_cells(comparison, tensors, set, nodes);
    });
  }
}

// The mask of a tensor's name: CutOutMask, or GridsMask_ and the numbers of grids.
Json grid_mask(const std::string& name) {
  if (name == "CutOutMask") return {{"class", name}};
  static const std::regex pattern("GridsMask((?:_[0-9]+)+)(?:_direct)?");
  std::smatch match;
  if (!std::regex_match(name, match, pattern))
    throw NotSupported("masks of variables, and masks that the case does not define");
  Json grids = Json::array();
  std::istringstream numbers(match[1]);
  for (std::string number; std::getline(numbers, number, '_');)
    if (!number.empty()) grids.push_back(std::stoll(number));
  return {{"class", "GridsMask"}, {"grids", grids}};
}

// Masks of a combined data set. What depends on its variables is not told by the case.
void run_grid_masks(const SafetensorsFile& tensors, const std::string& set, const Json& json,
                    Report& report) {
  const graph::NodeSet nodes = read_node_set(tensors, set + "/latlon_rad", set);
  const auto grids = json.at("grids").get<std::vector<int64_t>>();
  for (const auto& [tensor, entry] : tensors.entries()) {
    if (!tensor.starts_with(set + "/") || entry.dtype != DType::kBool ||
        tensor.find("/input/") != std::string::npos) {
      continue;
    }
    report.run("node attribute", tensor, [&, &tensor = tensor](Comparison& comparison) {
      const auto mask =
          node_attribute<float>(grid_mask(tensor.substr(set.size() + 1)), nodes, grids);
      comparison.require(mask == read_attribute(tensors, tensor).values, "the mask differs");
    });
  }
}

}  // namespace

void run_edge_attribute_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  const EdgeListCase list(file, tensors);
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("edge attribute", name, [&, &name = name, &json = json](Comparison& comparison) {
      require_described(json);
      if (package_refuses(json, "shape") && json.contains("attribute")) {
        return require_error(comparison,
                             [&] { edge_attribute<float>(json["attribute"], list.ends()); });
      }
      if (name.starts_with("one_edge/")) {
        return compare_one_edge(comparison, name, file.json.at("cases"));
      }
      if (name.starts_with("AttributeFrom")) return compare_copy(comparison, tensors, name, list);
      compare_float32(comparison, tensors, name, json, list);
      compare_float64(comparison, tensors, name, json, list);
    });
  }
  const Json refused = value_or(file.json, "refused_or_failed", Json::object());
  for (const auto& [name, json] : refused.items()) {
    if (!json.contains("attribute")) continue;
    report.run("edge attribute", "refused: " + name, [&, &json = json](Comparison& comparison) {
      require_error(comparison, [&] { edge_attribute<float>(json.at("attribute"), list.ends()); });
    });
  }
}

void run_node_attribute_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  for (const auto& [tensor, entry] : tensors.entries()) {
    const size_t end = tensor.find("/latlon_rad");
    if (end == std::string::npos) continue;
    const std::string set = tensor.substr(0, end);
    const auto described = file.json.at("cases").find(set);
    if (described != file.json.at("cases").end()) {
      run_grid_masks(tensors, set, *described, report);
    } else {
      run_node_weights(file, tensors, set, report);
    }
  }
  const Json refused = value_or(file.json, "refused_or_failed", Json::object());
  for (const auto& [name, json] : refused.items()) {
    if (!json.contains("attribute")) continue;
    report.run("node attribute", "refused: " + name,
               [&, &name = name, &json = json](Comparison& comparison) {
                 const std::string set = name.substr(0, name.find('/'));
                 const auto nodes = read_node_set(tensors, set + "/latlon_rad", set);
                 require_error(comparison,
                               [&] { node_attribute<float>(json.at("attribute"), nodes, {}); });
               });
  }
}

}  // namespace aifs::conformance
