// SPDX-License-Identifier: Apache-2.0
#include "app/conformance/graph_builder_cases.h"

#include "app/conformance/cases.h"
#include "app/conformance/graph_compare.h"
#include "graph/healpix.h"
#include "graph/kd_tree.h"
#include "graph/multi_scale_edges.h"

namespace aifs::conformance {

namespace {

constexpr int64_t kFinestRecognised = 8;

// The numbers at the end of "tri_list_1_2": the levels such a set was made with.
std::vector<int64_t> listed_levels(const std::string& name) {
  std::vector<int64_t> levels;
  const std::string marker = "list_";
  size_t at = name.find(marker);
  if (at == std::string::npos) return levels;
  for (at += marker.size(); at < name.size();) {
    const size_t end = std::min(name.find('_', at), name.size());
    levels.push_back(std::stoll(name.substr(at, end - at)));
    at = end + 1;
  }
  return levels;
}

int64_t healpix_resolution(int64_t num_nodes) {
  for (int64_t r = 1; r <= graph::kMaxHealpixResolution; ++r) {
    if (graph::healpix_pixels(r) == num_nodes) return r;
  }
  throw DataError(concat(num_nodes, " nodes are no HEALPix grid"));
}

// The node sets of an edge case, read from the file.
class EdgeCaseNodes {
 public:
  explicit EdgeCaseNodes(const SafetensorsFile& tensors) : tensors_(tensors) {}

  CaseNodes plain(const std::string& name) const {
    CaseNodes nodes;
    nodes.set = read_node_set(tensors_, concat("nodes/", name, "/latlon_rad"), name);
    const std::string mask = name == "s" ? "input/source_mask" : "input/target_mask";
    if (tensors_.contains(mask)) nodes.set.attributes["m"] = read_attribute(tensors_, mask);
    return nodes;
  }

  CaseNodes mesh(const std::string& name) const {
    if (name.find("hex") != std::string::npos) throw NotSupported("hexagonal nodes");
    CaseNodes nodes;
    const auto set = read_node_set(tensors_, concat("nodes/", name, "/latlon_rad"), name);
    if (name.starts_with("healpix")) {
      nodes.set = set;
      nodes.healpix_resolution = healpix_resolution(set.num_nodes());
      return nodes;
    }
    auto mesh = recognise_mesh(set);
    if (!mesh) throw NotSupported(concat("the mesh of nodes '", name, "'"));
    nodes = make_tri_nodes(name, std::move(*mesh));
    if (const auto levels = listed_levels(name); !levels.empty()) nodes.default_levels = levels;
    return nodes;
  }

  // The set whose name stands in the name of a case, or "".
  std::string named_in(const std::string& case_name) const {
    for (const auto& [tensor, entry] : tensors_.entries()) {
      if (!tensor.starts_with("nodes/")) continue;
      const std::string name = tensor.substr(6, tensor.find('/', 6) - 6);
      if (name.size() > 1 && case_name.find("_" + name + "_") != std::string::npos) return name;
    }
    return "";
  }

 private:
  const SafetensorsFile& tensors_;
};

void check_class(const Json& builders) {
  for (const Json& builder : builders) {
    if (class_name(builder).starts_with("ICON")) throw NotSupported("edges of ICON grids");
  }
}

void run_edge_case(Comparison& comparison, const SafetensorsFile& tensors, const std::string& name,
                   const Json& json) {
  check_class(json.at("builders"));
  const EdgeCaseNodes sets(tensors);
  const bool is_mesh = json.contains("nodes");
  const auto set = [&](const char* side) {
    return is_mesh ? sets.mesh(json.at("nodes").get<std::string>())
                   : sets.plain(json.at(side).get<std::string>());
  };
  const CaseNodes source = set("source"), target = set("target");
  const BuiltEdges built = build_edges(json.at("builders"), source, target);
  const auto stored = read_edge_list(tensors, name + "/edge_index");
  comparison.require(stored.num_edges() == json.at("edges").get<int64_t>(), "number of edges");
  if (source.healpix_resolution > 0) {  // negative numbers stand for missing neighbours
    comparison.require(built.edges.source_index == stored.source_index &&
                           built.edges.target_index == stored.target_index,
                       "the edges differ");
    return;
  }
  compare_edges(comparison, name, built, stored, source.set, target.set);
}

void run_refused_edge_case(Comparison& comparison, const SafetensorsFile& tensors,
                           const std::string& name, const Json& json) {
  const EdgeCaseNodes sets(tensors);
  const std::string mesh = sets.named_in(name);
  require_error(comparison, [&] {
    const bool one_set = name.find("on_latlon") != std::string::npos;
    const CaseNodes source = mesh.empty() ? sets.plain("s") : sets.mesh(mesh);
    const CaseNodes target = mesh.empty() && !one_set ? sets.plain("t") : source;
    build_edges(json.at("builders"), source, target);
  });
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
  for (int64_t r = 0; r <= kFinestRecognised; ++r) {
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
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("edges", name, [&, &name = name, &json = json](Comparison& comparison) {
      run_edge_case(comparison, tensors, name, json);
    });
  }
  const Json refused = value_or(file.json, "refused_or_failed", Json::object());
  for (const auto& [name, json] : refused.items()) {
    report.run("edges", "refused: " + name,
               [&, &name = name, &json = json](Comparison& comparison) {
                 run_refused_edge_case(comparison, tensors, name, json);
               });
  }
}

void run_graph_builder_cases(const CaseFile& file, Report& report) {
  const Json& first = file.json.at("cases").begin().value();
  if (first.contains("builders")) return run_edge_builder_cases(file, report);
  if (first.contains("builder")) return run_node_builder_cases(file, report);
  if (first.contains("post_processors")) return run_post_processor_cases(file, report);
  if (first.contains("grouped_by_target")) return run_edge_attribute_cases(file, report);
  return run_node_attribute_cases(file, report);
}

}  // namespace aifs::conformance
