// SPDX-License-Identifier: Apache-2.0
// Graphs after post-processors, and the small graphs that models derive: truncation, smoothing,
// projection.
#include <algorithm>
#include <set>

#include "conformance/graph_builder_cases.h"
#include "conformance/graph_compare.h"
#include "conformance/graph_unprocessed.h"
#include "conformance/limits.h"
#include "graph/post_kind.h"

namespace aifs::conformance {

namespace {

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

// The names of both ends of an edge set, "<source>_to_<target>".
struct Pair {
  std::string source, target;

  explicit Pair(const std::string& name) {
    const size_t middle = name.find("_to_");
    if (middle == std::string::npos) throw DataError(concat("'", name, "' names no two node sets"));
    source = name.substr(0, middle);
    target = name.substr(middle + 4);
  }
};

void check_meshes(const Json& builders, const CaseNodes& nodes) {
  for (const Json& builder : builders) {
    if (class_name(builder) == "MultiScaleEdges" && !nodes.mesh)
      throw NotSupported(concat("the mesh of nodes '", nodes.set.name, "'"));
  }
}

// A graph under construction: node sets, edge sets and the attributes they are asked to have.
class PostCase {
 public:
  // `sets`: those without edges, too.
  PostCase(const UnprocessedNodes& unprocessed, const Json& edges, std::set<std::string> sets) {
    for (const Json& entry : edges) {
      const CaseNodes& source = unprocessed.nodes(entry.at("source_name").get<std::string>());
      const CaseNodes& target = unprocessed.nodes(entry.at("target_name").get<std::string>());
      sets.insert({source.set.name, target.set.name});
      check_meshes(entry.at("edge_builders"), source);
      BuiltEdges built = build_edges(entry.at("edge_builders"), source, target);
      graph_.edge_sets.push_back({source.set.name,
                                  target.set.name,
                                  std::move(built.edges.source_index),
                                  std::move(built.edges.target_index),
                                  {}});
      attributes_.push_back(value_or(entry, "attributes", Json::object()));
    }
    for (const std::string& name : sets)
      graph_.node_sets.push_back(unprocessed.nodes(name).set);
    compute_attributes();
  }

  void apply(const Json& processor) {
    const auto options =
        options_of_part<graph::PostOptions>(anemoi::GraphPart::kPostProcess, processor);
    options.kind->apply({graph_, "post_processor", [&](graph::EdgeSet&) { compute_attributes(); }});
  }

  graph::Graph& graph() { return graph_; }
  const graph::Graph& graph() const { return graph_; }
  // The attributes that the i-th edge set is asked to have.
  const Json& attributes(size_t i) const { return attributes_[i]; }

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

  graph::Graph graph_;
  std::vector<Json> attributes_;  // of each edge set
};

BuiltEdges as_built(const graph::EdgeSet& edges) {
  BuiltEdges built;
  built.edges = {edges.source_index, edges.target_index};
  return built;
}

void sort_for_comparison(graph::EdgeSet& edges) {
  graph::sort_edges(edges, graph::EdgeEnd::kSource, false);
  graph::sort_edges(edges, graph::EdgeEnd::kTarget, false);
}

// The stored rows of an attribute in our order of edges; both lists are free of duplicates.
double attribute_difference(graph::EdgeSet ours, graph::EdgeSet theirs, const std::string& name,
                            bool directional, const graph::Graph& graph) {
  sort_for_comparison(ours);
  sort_for_comparison(theirs);
  const graph::Attribute &x = ours.attributes.at(name), &y = theirs.attributes.at(name);
  if (x.values.size() != y.values.size() || x.width != y.width) return INFINITY;
  const auto lengths =
      graph::edge_length<double>({graph.nodes(ours.source), graph.nodes(ours.target),
                                  ours.source_index, ours.target_index, 1});
  double most = 0.0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    if (directional && lengths[i / static_cast<size_t>(x.width)] <= kShortEdge) continue;
    const double difference =
        std::abs(static_cast<double>(x.values[i]) - static_cast<double>(y.values[i]));
    if (!(difference <= most)) most = difference;
  }
  return most;
}

void compare_edge_set(Comparison& comparison, const Stored& stored, const graph::EdgeSet& edges,
                      const Json& attributes, const graph::Graph& graph) {
  const std::string pair = edges.source + "_to_" + edges.target;
  const std::string tensor = concat(stored.prefix, "edges/", pair, "/");
  const auto list = read_edge_list(stored.tensors, tensor + "edge_index");
  const graph::NodeSet &source = graph.nodes(edges.source), &target = graph.nodes(edges.target);
  compare_edges(comparison, pair, as_built(edges), list, source, target);
  const graph::EdgeEnds ends{source, target, edges.source_index, edges.target_index, 1};
  for (const auto& [name, attribute] : edges.attributes) {
    if (!stored.has(concat("edges/", pair, "/", name))) continue;
    graph::EdgeSet ours{
        edges.source, edges.target, edges.source_index, edges.target_index, {{name, attribute}}};
    graph::EdgeSet theirs{edges.source, edges.target, list.source_index, list.target_index, {}};
    theirs.attributes[name] = read_attribute(stored.tensors, tensor + name);
    const Json& asked = attributes.at(name);
    const bool directional = class_name(asked) == "EdgeDirection";
    comparison.add(
        concat(pair, "/", name),
        attribute_difference(std::move(ours), std::move(theirs), name, directional, graph),
        attribute_limits(class_name(asked), slope_of_norm(asked, ends)).float32);
  }
}

void compare_graph(Comparison& comparison, const Stored& stored, const PostCase& result) {
  for (const graph::NodeSet& nodes : result.graph().node_sets) {
    const std::string place = concat(stored.prefix, "nodes/", nodes.name, "/");
    compare_coordinates(comparison, nodes.name, nodes, stored.nodes(nodes.name), kCoordinateLimit);
    for (const auto& [name, attribute] : nodes.attributes) {
      if (!stored.tensors.contains(place + name)) continue;        // sorting was run without masks
      if (stored.tensors.at(place + name).dtype == DType::kI64) {  // former numbers of kept nodes
        const auto numbers = stored.tensors.integers(place + name);
        const auto& ours = attribute.values;
        comparison.require(std::equal(ours.begin(), ours.end(), numbers.begin(), numbers.end()),
                           concat("other nodes of '", nodes.name, "' were kept"));
        continue;
      }
      comparison.add(concat(nodes.name, "/", name),
                     largest_relative_difference(attribute.values, stored.tensors, place + name),
                     1e-6);
    }
  }
  const auto& edge_sets = result.graph().edge_sets;
  for (size_t i = 0; i < edge_sets.size(); ++i)
    compare_edge_set(comparison, stored, edge_sets[i], result.attributes(i), result.graph());
}

// The edges of an unprocessed case that stores as many as another case, between the same sets.
const Json& unsorted_edges(const Stored& sorted, const Json& cases) {
  for (const auto& [name, json] : cases.items()) {
    if (!json.contains("edges") || !value_or(json, "post_processors", Json::array()).empty())
      continue;
    const Stored other{sorted.tensors, name + "/"};
    const auto pairs = sorted.names("edges/", "/edge_index");
    if (pairs != other.names("edges/", "/edge_index")) continue;
    const bool same = std::all_of(pairs.begin(), pairs.end(), [&](const std::string& pair) {
      const std::string index = concat("edges/", pair, "/edge_index");
      return sorted.tensors.at(sorted.prefix + index).shape ==
             sorted.tensors.at(other.prefix + index).shape;
    });
    if (same) return json["edges"];
  }
  throw NotSupported("edges that no case has as they were");
}

// How the edges of a case are sorted.
struct SortOrder {
  bool by_source = false, descending = false;
};

// Finds the order from stored edges: the row that is in order, in all edge sets. `by_source` and
// `descending` as far as the case says.
SortOrder stored_order(const Stored& stored, std::optional<bool> by_source,
                       std::optional<bool> descending) {
  const auto agrees = [&](const SortOrder& order) {
    if (by_source.value_or(order.by_source) != order.by_source ||
        descending.value_or(order.descending) != order.descending)
      return false;
    const auto names = stored.names("edges/", "/edge_index");
    return std::all_of(names.begin(), names.end(), [&](const std::string& pair) {
      const auto list =
          read_edge_list(stored.tensors, concat(stored.prefix, "edges/", pair, "/edge_index"));
      const auto& row = order.by_source ? list.source_index : list.target_index;
      return order.descending ? std::is_sorted(row.rbegin(), row.rend())
                              : std::is_sorted(row.begin(), row.end());
    });
  };
  for (const SortOrder order : {SortOrder{true, false}, SortOrder{true, true},
                                SortOrder{false, false}, SortOrder{false, true}}) {
    if (agrees(order)) return order;
  }
  return {by_source.value_or(true), descending.value_or(false)};  // the comparison will tell
}

// "SortEdgeIndexBy<Source|Target>Nodes", in ascending or descending order. Only the sorted row is
// defined.
void run_sort_case(Comparison& comparison, const SafetensorsFile& tensors,
                   const UnprocessedNodes& unprocessed, const std::string& name,
                   const Json& cases) {
  const Json& json = cases.at(name);
  const Stored stored{tensors, name + "/"};
  const auto sets = stored.names("nodes/", "/latlon_rad");
  PostCase result(unprocessed, unsorted_edges(stored, cases), {sets.begin(), sets.end()});
  std::optional<bool> by_source, descending;
  if (json.contains("class")) by_source = class_name(json).find("BySource") != std::string::npos;
  if (json.contains("descending")) descending = json.at("descending").get<bool>();
  const SortOrder order = stored_order(stored, by_source, descending);
  graph::SortEdgesKind sort;
  sort.by = order.by_source ? graph::EdgeEnd::kSource : graph::EdgeEnd::kTarget;
  sort.descending = order.descending;
  sort.apply({result.graph(), "sort", {}});
  for (const graph::EdgeSet& edges : result.graph().edge_sets) {
    const auto list = read_edge_list(
        tensors, concat(name, "/edges/", edges.source, "_to_", edges.target, "/edge_index"));
    comparison.require(order.by_source ? edges.source_index == list.source_index
                                       : edges.target_index == list.target_index,
                       "another order");
  }
  compare_graph(comparison, stored, result);
}

// The width of Gaussian weights, from the weights of the nearest and the farthest source of every
// target: ln(w_near / w_far) = (d_far^2 - d_near^2) / (2 sigma^2). 1, the default, where there are
// none.
double fitted_width(const std::vector<double>& weights, const graph::EdgeEnds& ends) {
  const auto lengths = graph::edge_length<double>(ends);
  std::map<int32_t, std::pair<size_t, size_t>> extremes;  // of each target: nearest, farthest
  for (size_t e = 0; e < lengths.size(); ++e) {
    if (!(weights[e] > 0.0)) continue;
    auto& [near, far] = extremes.try_emplace(ends.target_index[e], e, e).first->second;
    if (lengths[e] < lengths[near]) near = e;
    if (lengths[e] > lengths[far]) far = e;
  }
  double squares = 0.0, logarithms = 0.0;
  for (const auto& [target, edges] : extremes) {
    const auto [near, far] = edges;
    squares += lengths[far] * lengths[far] - lengths[near] * lengths[near];
    logarithms += 2.0 * std::log(weights[near] / weights[far]);
  }
  return logarithms > 0.0 ? std::sqrt(squares / logarithms) : 1.0;
}

// How many nearest sources a target has, and the width of their weights, if it is known.
struct Nearest {
  int64_t k;
  std::optional<double> width;
};

// Edges to the k nearest, and their weights, of the width that is given or that they tell.
void compare_projection(Comparison& comparison, const SafetensorsFile& tensors,
                        const std::string& prefix, const CaseNodes& source, const CaseNodes& target,
                        const Nearest& nearest) {
  const BuiltEdges built =
      build_edges(Json::array({{{"class", "KNNEdges"}, {"num_nearest_neighbours", nearest.k}}}),
                  source, target);
  const auto list = read_edge_list(tensors, prefix + "edge_index");
  compare_edges(comparison, prefix, built, list, source.set, target.set);
  if (!tensors.contains(prefix + "gauss_weight")) return;
  const graph::EdgeEnds ends{source.set, target.set, list.source_index, list.target_index, 1};
  const double sigma =
      nearest.width ? *nearest.width : fitted_width(tensors.doubles(prefix + "gauss_weight"), ends);
  const auto weights = edge_attribute<float>(
      {{"class", "GaussianDistanceWeights"}, {"sigma", sigma}, {"norm", "l1"}}, ends);
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
  for (const std::string& id : stored.names("edges/", "/edge_index")) {
    const Pair pair(id);
    const CaseNodes &source = nodes.at(pair.source), &target = nodes.at(pair.target);
    const std::string prefix = concat(name, "/edges/", id, "/");
    const int64_t k =
        most_neighbours(read_edge_list(tensors, prefix + "edge_index"), target.set.num_nodes());
    if (config.contains("num_nearest_neighbours")) {
      comparison.require(k == config["num_nearest_neighbours"].get<int64_t>(), "neighbours");
    }
    compare_projection(comparison, tensors, prefix, source, target, {k, sigma});
  }
}

// Smoothers of the only set whose coordinates are inputs.
void run_smoothers(Comparison& comparison, const SafetensorsFile& tensors,
                   const UnprocessedNodes& unprocessed, const Json& expanded) {
  const std::vector<std::string> sets = unprocessed.input_sets();
  if (sets.size() != 1) throw NotSupported("smoothers where several node sets are inputs");
  const CaseNodes& data = unprocessed.nodes(sets.front());
  for (const auto& [name, options] : expanded.items()) {
    compare_projection(
        comparison, tensors, name + "/", data, data,
        {options.at("num_nearest_neighbours").get<int64_t>(), options.at("sigma").get<double>()});
  }
}

void run_post_case(Comparison& comparison, const SafetensorsFile& tensors,
                   const UnprocessedNodes& unprocessed, const std::string& name,
                   const Json& cases) {
  const Json& json = cases.at(name);
  require_described(json);
  const Stored stored{tensors, name + "/"};
  if (json.contains("expanded"))
    return run_smoothers(comparison, tensors, unprocessed, json["expanded"]);
  if (!json.contains("edges")) {
    // Without its options: graphs that are derived have weights, edges that are sorted have none.
    const bool sorts = json.contains("class") ? class_name(json).starts_with("SortEdgeIndex")
                                              : stored.names("edges/", "/gauss_weight").empty();
    if (sorts && !json.contains("config"))
      return run_sort_case(comparison, tensors, unprocessed, name, cases);
    return run_derived_case(comparison, tensors, name, json);
  }
  const auto sets = stored.names("nodes/", "/latlon_rad");
  PostCase result(unprocessed, json["edges"], {sets.begin(), sets.end()});
  const auto apply_all = [&] {
    for (const Json& processor : json.at("post_processors"))
      result.apply(processor);
  };
  if (package_refuses(json, "nodes")) return require_error(comparison, apply_all);
  apply_all();
  compare_graph(comparison, stored, result);
}

}  // namespace

void run_post_processor_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  const UnprocessedNodes unprocessed(file, tensors);
  const Json& cases = file.json.at("cases");
  for (const auto& [name, json] : cases.items()) {
    report.run("post-processor", name, [&, &name = name](Comparison& comparison) {
      run_post_case(comparison, tensors, unprocessed, name, cases);
    });
  }
}

}  // namespace aifs::conformance
