// SPDX-License-Identifier: Apache-2.0
// Graphs after post-processors, and the small graphs that models derive: truncation, smoothing,
// projection.
#include <algorithm>

#include "app/conformance/graph_builder_cases.h"
#include "app/conformance/graph_compare.h"
#include "graph/gaussian_grid.h"
#include "graph/post_process.h"

namespace aifs::conformance {

namespace {

constexpr double kCoordinateLimit = 1e-6;

// The stored tensors of one case.
struct Stored {
  const SafetensorsFile& tensors;
  std::string prefix;  // "<case>/"

  graph::NodeSet nodes(const std::string& name) const {
    return read_node_set(tensors, concat(prefix, "nodes/", name, "/latlon_rad"), name);
  }
  bool has(const std::string& tensor) const { return tensors.contains(prefix + tensor); }
  // Node sets and edge sets that the case stores.
  std::vector<std::string> names(const std::string& kind, const std::string& last) const {
    std::vector<std::string> names;
    for (const auto& [tensor, entry] : tensors.entries()) {
      const std::string start = prefix + kind;
      if (!tensor.starts_with(start) || !tensor.ends_with(last)) continue;
      names.push_back(tensor.substr(start.size(), tensor.size() - start.size() - last.size()));
    }
    return names;
  }
};

// Coordinates were given as lists, hence the arithmetic.
graph::NodeSet data_nodes(const SafetensorsFile& tensors) {
  const auto degrees = read_degrees(tensors, "input/data_latlon_deg");
  constexpr auto kFloat32 = graph::DegreeArithmetic::kFloat32;
  graph::NodeSet nodes{"data",
                       graph::radians_from_degrees(degrees.lat_deg, kFloat32),
                       graph::radians_from_degrees(degrees.lon_deg, kFloat32),
                       {}};
  nodes.attributes["mask"] = read_attribute(tensors, "input/data_mask");
  nodes.attributes["area_weight"] = {
      1,
      node_attribute<float>({{"class", "SphericalAreaWeights"}, {"norm", "unit-max"}}, nodes, {})};
  return nodes;
}

std::vector<uint8_t> mask_of(const graph::NodeSet& nodes, const std::string& name) {
  CaseNodes view;
  view.set = nodes;
  return view.mask(name);
}

// The hidden nodes of the reference before post-processing: its whole mesh, in its order.
CaseNodes hidden_nodes(const SafetensorsFile& tensors) {
  const auto stored = read_node_set(tensors, "none_full/nodes/hidden/latlon_rad", "hidden");
  auto mesh = recognise_mesh(stored);
  if (!mesh) throw NotSupported("hidden nodes that are no icosahedral mesh");
  return make_tri_nodes("hidden", std::move(*mesh));
}

// A graph under construction: node sets, edge sets and the attributes they are asked to have.
class PostCase {
 public:
  PostCase(const SafetensorsFile& tensors, const Json& edges) {
    const CaseNodes hidden = hidden_nodes(tensors);
    CaseNodes data;
    data.set = data_nodes(tensors);
    graph_.node_sets = {data.set, hidden.set};
    for (const Json& entry : edges) {
      const auto& source = entry.at("source_name") == "data" ? data : hidden;
      const auto& target = entry.at("target_name") == "data" ? data : hidden;
      BuiltEdges built = build_edges(entry.at("edge_builders"), source, target);
      graph_.edge_sets.push_back({source.set.name,
                                  target.set.name,
                                  std::move(built.edges.source_index),
                                  std::move(built.edges.target_index),
                                  {}});
      attributes_.push_back(entry.at("attributes"));
    }
    compute_attributes();
  }

  void apply(const Json& processor) {
    const std::string name = class_name(processor);
    if (name == "RemoveUnconnectedNodes" || name == "SubsetNodesInArea") {
      return remove_nodes(processor, name == "RemoveUnconnectedNodes");
    }
    if (name == "RestrictEdgeLength") return restrict_length(processor);
    if (name == "RemoveSelfEdges") return remove_self_edges(processor);
    throw NotSupported(concat("post-processor ", name));
  }

  graph::Graph& graph() { return graph_; }
  const std::map<std::string, std::vector<int32_t>>& kept() const { return kept_; }

 private:
  void compute_attributes() {
    for (size_t i = 0; i < graph_.edge_sets.size(); ++i) {
      graph::EdgeSet& edges = graph_.edge_sets[i];
      const graph::EdgeEnds ends{graph_.nodes(edges.source), graph_.nodes(edges.target),
                                 edges.source_index, edges.target_index, 1};
      for (const auto& [name, attribute] : attributes_[i].items()) {
        Values<float> values = edge_attribute<float>(attribute, ends);
        edges.attributes[name] = {values.width, std::move(values.rows)};
      }
    }
  }

  void remove_nodes(const Json& processor, bool unconnected) {
    const Json& names = processor.at("nodes_name");
    for (const Json& entry : names.is_array() ? names : Json::array({names})) {
      const auto name = entry.get<std::string>();
      const graph::NodeSet& nodes = graph_.nodes(name);
      std::vector<uint8_t> keep;
      if (unconnected) {
        keep = graph::connected_nodes(graph_, name);
        const auto ignore = value_or<std::string>(processor, "ignore", "");
        if (!ignore.empty()) {
          const auto mask = mask_of(nodes, ignore);
          std::transform(keep.begin(), keep.end(), mask.begin(), keep.begin(), std::bit_or<>());
        }
      } else {
        const auto limits = processor.at("area").get<std::vector<double>>();
        keep =
            graph::nodes_in_area(nodes, {limits.at(0), limits.at(1), limits.at(2), limits.at(3)});
      }
      kept_[name] = graph::keep_nodes(graph_, name, keep);
    }
  }

  graph::EdgeSet& edge_set(const Json& processor) {
    for (graph::EdgeSet& edges : graph_.edge_sets) {
      if (edges.source == processor.at("source_name") &&
          edges.target == processor.at("target_name"))
        return edges;
    }
    throw Error("a post-processor names edges that do not exist");
  }

  void restrict_length(const Json& processor) {
    graph::EdgeSet& edges = edge_set(processor);
    auto keep = graph::edges_up_to(graph_, edges, processor.at("max_length_km").get<double>());
    const auto spare_unmasked = [&](const char* key, const std::string& nodes,
                                    const std::vector<int32_t>& index) {
      const auto name = value_or<std::string>(processor, key, "");
      if (name.empty()) return;
      const auto mask = mask_of(graph_.nodes(nodes), name);
      for (size_t e = 0; e < keep.size(); ++e) {
        if (mask[static_cast<size_t>(index[e])] == 0) keep[e] = 1;
      }
    };
    spare_unmasked("source_mask_attr_name", edges.source, edges.source_index);
    spare_unmasked("target_mask_attr_name", edges.target, edges.target_index);
    graph::keep_edges(edges, keep);
    compute_attributes();
  }

  void remove_self_edges(const Json& processor) {
    if (processor.at("source_name") != processor.at("target_name")) {
      throw Error("self edges join a node set with itself");
    }
    graph::EdgeSet& edges = edge_set(processor);
    std::vector<uint8_t> keep;
    for (size_t e = 0; e < edges.source_index.size(); ++e)
      keep.push_back(edges.source_index[e] != edges.target_index[e] ? 1 : 0);
    graph::keep_edges(edges, keep);
    compute_attributes();
  }

  graph::Graph graph_;
  std::vector<Json> attributes_;  // of each edge set
  std::map<std::string, std::vector<int32_t>> kept_;
};

BuiltEdges as_built(const graph::EdgeSet& edges) {
  BuiltEdges built;
  built.edges = {edges.source_index, edges.target_index};
  return built;
}

void compare_edge_set(Comparison& comparison, const Stored& stored, const graph::EdgeSet& edges,
                      const graph::Graph& graph) {
  const std::string pair = edges.source + "_to_" + edges.target;
  const std::string tensor = concat(stored.prefix, "edges/", pair, "/");
  const auto list = read_edge_list(stored.tensors, tensor + "edge_index");
  const graph::NodeSet &source = graph.nodes(edges.source), &target = graph.nodes(edges.target);
  compare_edges(comparison, pair, as_built(edges), list, source, target);
  for (const auto& [name, attribute] : edges.attributes) {
    if (!stored.has(concat("edges/", pair, "/", name))) continue;
    // The stored rows in our order of edges; both lists are free of duplicates.
    graph::EdgeSet theirs{edges.source, edges.target, list.source_index, list.target_index, {}};
    theirs.attributes[name] = read_attribute(stored.tensors, tensor + name);
    graph::EdgeSet ours{
        edges.source, edges.target, edges.source_index, edges.target_index, {{name, attribute}}};
    for (graph::EdgeSet* set : {&ours, &theirs}) {
      graph::sort_edges(*set, graph::EdgeEnd::kSource, false);
      graph::sort_edges(*set, graph::EdgeEnd::kTarget, false);
    }
    const auto &a = ours.attributes[name].values, &b = theirs.attributes[name].values;
    double most = a.size() == b.size() ? 0.0 : INFINITY;
    for (size_t i = 0; i < a.size() && a.size() == b.size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    comparison.add(concat(pair, "/", name), most, name == "edge_length" ? 5e-5 : 2e-4);
  }
}

void compare_graph(Comparison& comparison, const Stored& stored, const PostCase& result,
                   const graph::Graph& graph) {
  for (const graph::NodeSet& nodes : graph.node_sets) {
    compare_coordinates(comparison, nodes.name, nodes, stored.nodes(nodes.name), kCoordinateLimit);
    for (const auto& [name, attribute] : nodes.attributes) {
      const std::string tensor = concat(stored.prefix, "nodes/", nodes.name, "/", name);
      if (!stored.tensors.contains(tensor)) continue;  // sorting was run on graphs without masks
      comparison.add(concat(nodes.name, "/", name),
                     largest_relative_difference(attribute.values, stored.tensors, tensor), 1e-6);
    }
    const std::string kept = concat(stored.prefix, "nodes/", nodes.name, "/kept");
    if (!stored.tensors.contains(kept)) continue;
    const auto numbers = stored.tensors.integers(kept);
    const auto& ours = result.kept().at(nodes.name);
    comparison.require(std::equal(ours.begin(), ours.end(), numbers.begin(), numbers.end()),
                       concat("other nodes of '", nodes.name, "' were kept"));
  }
  for (const graph::EdgeSet& edges : graph.edge_sets)
    compare_edge_set(comparison, stored, edges, graph);
}

// "SortEdgeIndexBy<Source|Target>Nodes_<order>_called_directly": only the sorted row is defined.
void run_sort_case(Comparison& comparison, const SafetensorsFile& tensors, const std::string& name,
                   const Json& cases) {
  PostCase result(tensors, cases.at("none_encoder_only").at("edges"));
  const bool by_source = name.find("BySource") != std::string::npos;
  for (graph::EdgeSet& edges : result.graph().edge_sets) {
    graph::sort_edges(edges, by_source ? graph::EdgeEnd::kSource : graph::EdgeEnd::kTarget,
                      name.find("descending") != std::string::npos);
    const auto list = read_edge_list(
        tensors, concat(name, "/edges/", edges.source, "_to_", edges.target, "/edge_index"));
    comparison.require(by_source ? edges.source_index == list.source_index
                                 : edges.target_index == list.target_index,
                       "another order");
  }
  compare_graph(comparison, {tensors, name + "/"}, result, result.graph());
}

// Edges to the k nearest, and their weights if the case tells their width.
void compare_projection(Comparison& comparison, const SafetensorsFile& tensors,
                        const std::string& prefix, const CaseNodes& source, const CaseNodes& target,
                        int64_t k, std::optional<double> sigma) {
  const BuiltEdges built = build_edges(
      Json::array({{{"class", "KNNEdges"}, {"num_nearest_neighbours", k}}}), source, target);
  const auto list = read_edge_list(tensors, prefix + "edge_index");
  compare_edges(comparison, prefix, built, list, source.set, target.set);
  if (!sigma) return;
  const auto weights = edge_attribute<float>(
      {{"class", "GaussianDistanceWeights"}, {"sigma", *sigma}, {"norm", "l1"}},
      {source.set, target.set, list.source_index, list.target_index, 1});
  comparison.add(
      prefix + "gauss_weight",
      largest_difference(weights, tensors, prefix + "gauss_weight", [](size_t) { return true; }),
      1e-5);
}

int64_t most_neighbours(const graph::EdgeList& edges, int64_t num_targets) {
  return edges.num_edges() / std::max<int64_t>(1, num_targets);
}

// Truncation and projection graphs: every edge set holds the k nearest of each target.
void run_derived_case(Comparison& comparison, const SafetensorsFile& tensors,
                      const std::string& name, const Json& json) {
  const Stored stored{tensors, name + "/"};
  std::map<std::string, CaseNodes> nodes;
  for (const std::string& set : stored.names("nodes/", "/latlon_rad"))
    nodes[set].set = stored.nodes(set);
  const Json config = json.value("config", Json::object());
  std::optional<double> sigma;
  if (config.contains("sigma")) sigma = config["sigma"].get<double>();
  if (name.find("defaults") != std::string::npos) sigma = 1.0;
  for (const std::string& pair : stored.names("edges/", "/edge_index")) {
    const size_t middle = pair.find("_to_");
    const CaseNodes& source = nodes.at(pair.substr(0, middle));
    const CaseNodes& target = nodes.at(pair.substr(middle + 4));
    const std::string prefix = concat(name, "/edges/", pair, "/");
    const int64_t k =
        most_neighbours(read_edge_list(tensors, prefix + "edge_index"), target.set.num_nodes());
    if (config.contains("num_nearest_neighbours")) {
      comparison.require(k == config["num_nearest_neighbours"].get<int64_t>(), "neighbours");
    }
    compare_projection(comparison, tensors, prefix, source, target, k, sigma);
  }
}

void run_smoothers(Comparison& comparison, const SafetensorsFile& tensors, const Json& expanded) {
  CaseNodes data;
  data.set = data_nodes(tensors);
  for (const auto& [name, options] : expanded.items()) {
    compare_projection(comparison, tensors, name + "/", data, data,
                       options.at("num_nearest_neighbours").get<int64_t>(),
                       options.at("sigma").get<double>());
  }
}

void run_post_case(Comparison& comparison, const SafetensorsFile& tensors, const std::string& name,
                   const Json& json, const Json& cases) {
  if (name.starts_with("SortEdgeIndex")) return run_sort_case(comparison, tensors, name, cases);
  if (json.contains("expanded")) return run_smoothers(comparison, tensors, json["expanded"]);
  if (!json.contains("edges")) return run_derived_case(comparison, tensors, name, json);
  PostCase result(tensors, json.at("edges"));
  for (const Json& processor : json.at("post_processors"))
    result.apply(processor);
  compare_graph(comparison, {tensors, name + "/"}, result, result.graph());
}

}  // namespace

void run_post_processor_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  const Json& cases = file.json.at("cases");
  for (const auto& [name, json] : cases.items()) {
    report.run("post-processor", name, [&, &name = name, &json = json](Comparison& comparison) {
      run_post_case(comparison, tensors, name, json, cases);
    });
  }
}

}  // namespace aifs::conformance
