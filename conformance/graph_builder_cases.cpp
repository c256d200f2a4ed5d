// SPDX-License-Identifier: Apache-2.0
#include "conformance/graph_builder_cases.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "conformance/cases.h"
#include "conformance/graph_compare.h"
#include "conformance/icon_case.h"
#include "graph/base/kd_tree.h"
#include "graph/edges/multi_scale_edges.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/healpix.h"
#include "graph/nodes/icosphere.h"

namespace aifs::conformance {

namespace {

constexpr int64_t kFinestRecognised = 8;
constexpr double kSamePlace = 1e-6;  // chord

// The finest icosahedral mesh that can have vertices as near to each other as the nearest points:
// its edges are at least 0.8 / 2^refinement long.
int64_t finest_possible(const std::vector<graph::Point<double>>& points) {
  if (points.empty()) return 0;
  const graph::KdTree<double> tree(points);
  double nearest2 = 4.0;
  std::vector<graph::Neighbour> found;
  for (const auto& point : points) {
    tree.nearest(point, 2, found);
    if (found.size() == 2) nearest2 = std::min(nearest2, found.back().distance2);
  }
  int64_t refinement = 0;
  while (refinement < kFinestRecognised && std::ldexp(std::sqrt(nearest2), refinement + 1) <= 1.3)
    ++refinement;
  return std::min(refinement + 1, kFinestRecognised);
}

// The resolution of the HEALPix grid that the nodes are, or 0.
int64_t healpix_resolution_of(const graph::NodeSet& nodes) {
  for (int64_t r = 1; r <= graph::kMaxHealpixResolution; ++r) {
    if (graph::healpix_pixels(r) != nodes.num_nodes()) continue;
    const graph::Coordinates grid = graph::healpix_coordinates(r);
    const graph::NodeSet pixels{"pixels",
                                graph::radians_from_degrees(grid.lat_deg),
                                graph::radians_from_degrees(grid.lon_deg),
                                {}};
    if (largest_distance(pixels, nodes) <= kSamePlace) return r;
  }
  return 0;
}

// The names that builders give to masks.
std::vector<std::string> mask_names(const Json& builders) {
  std::vector<std::string> names;
  for (const Json& builder : builders) {
    for (const char* key : {"source_mask_attr_name", "target_mask_attr_name"}) {
      if (const auto name = value_or<std::string>(builder, key, ""); !name.empty())
        names.push_back(name);
    }
  }
  return names;
}

// The node sets of an edge case, read from the file.
class EdgeCaseNodes {
 public:
  EdgeCaseNodes(const CaseFile& file, const SafetensorsFile& tensors)
      : file_(file), tensors_(tensors) {}

  // Nodes at which a case's edges begin or end, with the mask that its builders name.
  CaseNodes plain(const std::string& name, const Json& builders) const {
    CaseNodes nodes;
    nodes.set = stored(name);
    for (const std::string& mask : mask_names(builders)) {
      if (const auto values = mask_of(nodes.set)) nodes.set.attributes[mask] = *values;
    }
    return nodes;
  }

  // Nodes of a mesh, with the levels that multi-scale edges have on it if none are listed.
  CaseNodes mesh(const std::string& name, const Json& json) const {
    if (!meshes_.contains(name)) meshes_[name] = recognised(name);
    if (!meshes_[name]) throw NotSupported(concat("the mesh of nodes '", name, "'"));
    CaseNodes nodes = *meshes_[name];
    if (nodes.mesh && needs_levels(json)) nodes.default_levels = levels_of(name, json, nodes);
    return nodes;
  }

 private:
  graph::NodeSet stored(const std::string& name) const {
    return read_node_set(tensors_, concat("nodes/", name, "/latlon_rad"), name);
  }

  std::optional<CaseNodes> recognised(const std::string& name) const {
    CaseNodes nodes;
    nodes.set = stored(name);
    nodes.healpix_resolution = healpix_resolution_of(nodes.set);
    if (nodes.healpix_resolution > 0) return nodes;
    auto mesh = recognise_mesh(nodes.set);
    if (!mesh) return std::nullopt;
    return make_tri_nodes(name, std::move(*mesh));
  }

  static bool needs_levels(const Json& json) {
    return std::any_of(json.at("builders").begin(), json.at("builders").end(),
                       [](const Json& builder) {
                         const auto levels = builder.find("scale_resolutions");
                         return levels == builder.end() || levels->is_null();
                       });
  }

  // input/<role>_mask belongs to the nodes whose coordinates are input/<role>_latlon_deg.
  std::optional<graph::Attribute> mask_of(const graph::NodeSet& nodes) const {
    const std::string start = "input/", end = "_mask";
    for (const auto& [tensor, entry] : tensors_.entries()) {
      if (!tensor.starts_with(start) || !tensor.ends_with(end)) continue;
      const std::string places = tensor.substr(0, tensor.size() - end.size()) + "_latlon_deg";
      if (entry.shape.at(0) != nodes.num_nodes() || !tensors_.contains(places)) continue;
      const graph::Coordinates degrees = read_degrees(tensors_, places);
      const graph::NodeSet own{"input",
                               graph::radians_from_degrees(degrees.lat_deg),
                               graph::radians_from_degrees(degrees.lon_deg),
                               {}};
      if (largest_distance(own, nodes) <= kSamePlace) return read_attribute(tensors_, tensor);
    }
    return std::nullopt;
  }

  // The levels that a node set was made with: what a file of node builders beside this one says of
  // a set of this name, else all up to the finest from the coarsest that gives the stored number of
  // edges.
  std::vector<int64_t> levels_of(const std::string& name, const Json& json,
                                 const CaseNodes& nodes) const {
    for (const auto& entry : fs::directory_iterator(file_.json_path.parent_path())) {
      if (entry.path().extension() != ".json" || entry.path() == file_.json_path) continue;
      const CaseFile other(entry.path());
      const Json cases = other.json.is_object() ? other.json.value("cases", Json()) : Json();
      if (!cases.is_object() || !cases.contains(name) || !cases[name].is_object()) continue;
      if (cases[name].contains("default_levels"))
        return cases[name]["default_levels"].get<std::vector<int64_t>>();
    }
    const auto wanted = value_or<int64_t>(json, "edges", -1);
    for (int64_t coarsest = 0; coarsest <= nodes.mesh->refinement; ++coarsest) {
      CaseNodes tried = nodes;
      tried.default_levels = graph::level_range(coarsest, nodes.mesh->refinement);
      if (build_edges(json.at("builders"), tried, tried).edges.num_edges() == wanted)
        return tried.default_levels;
    }
    return nodes.default_levels;
  }

  const CaseFile& file_;
  const SafetensorsFile& tensors_;
  mutable std::map<std::string, std::optional<CaseNodes>> meshes_;
};

// Edges without those whose target is a negative number, which stands for a node that there is not:
// attributes of such edges cannot be computed, and runs have none.
graph::EdgeList between_nodes(const graph::EdgeList& edges) {
  graph::EdgeList kept;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    if (edges.source_index[e] >= 0 && edges.target_index[e] >= 0)
      kept.add(edges.source_index[e], edges.target_index[e]);
  }
  return kept;
}

bool is_icon(const Json& builders) {
  return std::any_of(builders.begin(), builders.end(),
                     [](const Json& builder) { return class_name(builder).starts_with("ICON"); });
}

void run_icon_case(Comparison& comparison, const IconCase& icon, const SafetensorsFile& tensors,
                   const std::string& name, const Json& json) {
  const auto nodes = [&](bool cells) {
    CaseNodes side;
    const auto all = icon.nodes(cells);
    side.set = all.set;
    side.icon = all.icon;
    return side;
  };
  CaseNodes source = nodes(icon.part == "encoder"), target = nodes(icon.part == "decoder");
  if (icon.part == "processor") target = source;
  const BuiltEdges built = build_edges(json.at("builders"), source, target);
  const auto pairs = [](const graph::EdgeList& edges) {
    std::multiset<std::pair<int32_t, int32_t>> all;
    for (size_t e = 0; e < edges.source_index.size(); ++e)
      all.emplace(edges.source_index[e], edges.target_index[e]);
    return all;
  };
  const auto stored = between_nodes(read_edge_list(tensors, name + "/edge_index"));
  comparison.require(pairs(built.edges) == pairs(stored), "the edges differ");
}

void run_edge_case(Comparison& comparison, const SafetensorsFile& tensors,
                   const EdgeCaseNodes& sets, const std::string& name, const Json& json) {
  require_described(json);
  const bool is_mesh = json.contains("nodes");
  const auto set = [&](const char* side) {
    return is_mesh ? sets.mesh(json.at("nodes").get<std::string>(), json)
                   : sets.plain(json.at(side).get<std::string>(), json.at("builders"));
  };
  const CaseNodes source = set("source"), target = set("target");
  if (package_refuses(json, "edges"))
    return require_error(comparison, [&] { build_edges(json.at("builders"), source, target); });
  const BuiltEdges built = build_edges(json.at("builders"), source, target);
  const auto stored = read_edge_list(tensors, name + "/edge_index");
  comparison.require(stored.num_edges() == value_or(json, "edges", stored.num_edges()),
                     "number of edges");
  if (source.healpix_resolution > 0) {
    const graph::EdgeList wanted = between_nodes(stored);
    comparison.require(built.edges.source_index == wanted.source_index &&
                           built.edges.target_index == wanted.target_index,
                       "the edges differ");
    return;
  }
  compare_edges(comparison, name, built, stored, source.set, target.set);
}

// Nodes between which a case has edges: those of a mesh, or two sets.
struct CaseSides {
  std::string mesh, source, target;
  auto operator<=>(const CaseSides&) const = default;
};

CaseSides sides_of(const Json& json) {
  return {value_or<std::string>(json, "nodes", ""), value_or<std::string>(json, "source", ""),
          value_or<std::string>(json, "target", "")};
}

std::vector<std::string> classes_of(const Json& builders) {
  std::vector<std::string> names;
  for (const Json& builder : builders)
    names.push_back(class_name(builder));
  return names;
}

// Builders without the options that are null: those that are not given.
Json without_nulls(Json builders) {
  for (Json& builder : builders) {
    for (auto it = builder.begin(); it != builder.end();)
      it = it->is_null() ? builder.erase(it) : std::next(it);
  }
  return builders;
}

// A case that is refused stores no edges, and need not say between which nodes they were to be. The
// other cases of the file tell: builders that one of them has cannot be the reason, so it is the
// nodes, which are none of a mesh; else they are some that builders of these classes work on.
std::set<CaseSides> refused_sides(const Json& json, const Json& cases) {
  const Json builders = without_nulls(json.at("builders"));
  std::set<CaseSides> plain, alike;
  bool works_elsewhere = false;
  for (const Json& other : cases) {
    CaseSides sides = sides_of(other);
    const bool is_same = without_nulls(other.at("builders")) == builders;
    works_elsewhere = works_elsewhere || is_same;
    if (!is_same && classes_of(other.at("builders")) == classes_of(builders)) alike.insert(sides);
    if (sides.mesh.empty()) plain.insert(std::move(sides));
  }
  return works_elsewhere || alike.empty() ? plain : alike;
}

void run_refused_edge_case(Comparison& comparison, const CaseFile& file, const EdgeCaseNodes& sets,
                           const Json& json) {
  require_described(json);
  const Json& builders = json.at("builders");
  const auto build = [&](const CaseSides& sides) {
    if (sides.mesh.empty()) {
      build_edges(builders, sets.plain(sides.source, builders), sets.plain(sides.target, builders));
      return;
    }
    const CaseNodes nodes = sets.mesh(sides.mesh, Json{{"builders", Json::array()}});
    build_edges(builders, nodes, nodes);
  };
  const CaseSides own = sides_of(json);
  if (!own.mesh.empty() || !own.source.empty())
    return require_error(comparison, [&] { build(own); });
  bool is_tried = false;
  for (const CaseSides& sides : refused_sides(json, file.json.at("cases"))) {
    try {
      build(sides);
      is_tried = true;
    } catch (const NotSupported&) {  // nodes of another kind
    } catch (const Error&) {
      return comparison.require(true, "an error");
    }
  }
  if (!is_tried) throw NotSupported("the nodes of a case that is refused");
  comparison.require(false, "the reference refuses this, we do not");
}

}  // namespace

void require_error(Comparison& comparison, const std::function<void()>& body) {
  try {
    body();
  } catch (const NotSupported&) {
    throw;
  } catch (const Error&) {
    comparison.require(true, "an error");
    return;
  }
  comparison.require(false, "the reference refuses this, we do not");
}

std::optional<graph::TriNodes> recognise_mesh(const graph::NodeSet& nodes) {
  const auto points = graph::unit_vectors<double>(nodes.lat_rad, nodes.lon_rad);
  std::vector<graph::Neighbour> found;
  for (int64_t r = 0; r <= finest_possible(points); ++r) {
    if (graph::icosphere_vertices(r) < nodes.num_nodes()) continue;
    const graph::TriNodes whole = graph::tri_nodes(r);
    const graph::KdTree<double> tree(graph::unit_vectors<double>(whole.lat_rad, whole.lon_rad));
    graph::TriNodes mesh{r, nodes.lat_rad, nodes.lon_rad, {}};
    for (const auto& point : points) {
      tree.nearest(point, 1, found);
      if (found.front().distance2 > 1e-12) break;
      mesh.vertex.push_back(whole.vertex[static_cast<size_t>(found.front().index)]);
    }
    if (mesh.num_nodes() == nodes.num_nodes()) return mesh;
  }
  return std::nullopt;
}

void run_edge_builder_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  const EdgeCaseNodes sets(file, tensors);
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("edges", name, [&, &name = name, &json = json](Comparison& comparison) {
      if (!is_icon(json.at("builders")))
        return run_edge_case(comparison, tensors, sets, name, json);
      require_described(json);
      run_icon_case(comparison, IconCase(file, name), tensors, name, json);
    });
  }
  const Json refused = value_or(file.json, "refused_or_failed", Json::object());
  for (const auto& [name, json] : refused.items()) {
    report.run("edges", "refused: " + name, [&, &json = json](Comparison& comparison) {
      run_refused_edge_case(comparison, file, sets, json);
    });
  }
}

void run_graph_builder_cases(const CaseFile& file, Report& report) {
  const Json& cases = file.json.at("cases");
  const auto some_has = [&](const char* key) {
    return std::any_of(cases.begin(), cases.end(),
                       [&](const Json& one) { return one.is_object() && one.contains(key); });
  };
  if (some_has("builders")) return run_edge_builder_cases(file, report);
  if (some_has("builder")) return run_node_builder_cases(file, report);
  if (some_has("post_processors")) return run_post_processor_cases(file, report);
  if (some_has("grouped_by_target")) return run_edge_attribute_cases(file, report);
  return run_node_attribute_cases(file, report);
}

}  // namespace aifs::conformance
