// SPDX-License-Identifier: Apache-2.0
// The table of changes to a finished graph. A new kind is a struct in post_kind.h and a line here.
#include <algorithm>

#include "core/check.h"
#include "graph/post_kind.h"

namespace aifs::graph {

namespace {

// fp32 holds all numbers of nodes up to here.
constexpr int64_t kMostSaved = int64_t{1} << 24;

const NodeSet& nodes_of(const PostPlace& place, const std::string& name) {
  try {
    return place.graph.nodes(name);
  } catch (const Error& error) {
    throw ConfigError(place.path, error.what(), error.hint());
  }
}

EdgeSet& edges_of(const PostPlace& place, const std::string& source, const std::string& target) {
  for (EdgeSet& edges : place.graph.edge_sets)
    if (edges.source == source && edges.target == target) return edges;
  throw ConfigError(place.path, concat("the graph has no edges ", source, "->", target));
}

std::vector<uint8_t> mask_of(const NodeSet& nodes, const std::string& name,
                             const std::string& path) {
  const auto found = nodes.attributes.find(name);
  if (found == nodes.attributes.end() || found->second.width != 1) {
    std::vector<std::string> known;
    for (const auto& [key, attribute] : nodes.attributes)
      known.push_back(key);
    throw ConfigError(path, concat("nodes '", nodes.name, "' have no mask '", name, "'"),
                      nearest_names(name, known));
  }
  std::vector<uint8_t> mask;
  for (const float value : found->second.values)
    mask.push_back(value != 0.0F ? 1 : 0);
  return mask;
}

// Returns the former numbers of the kept nodes.
std::vector<int32_t> keep(const PostPlace& place, const std::string& name,
                          const std::vector<uint8_t>& kept) {
  if (std::find(kept.begin(), kept.end(), 1) == kept.end())
    throw ConfigError(place.path, concat("no node of '", name, "' would be left"));
  return keep_nodes(place.graph, name, kept);
}

}  // namespace

void RemoveUnconnectedKind::bind(config::Binder& b) {
  b.text_list("nodes", nodes, {"node sets"});
  b.text("ignore", ignore, {"attribute of the nodes: those where it is not 0 stay; empty: none"});
  b.text("save_as", save_as,
         {"name of a node attribute that gets the former numbers of the kept nodes; empty: none"});
}

void RemoveUnconnectedKind::validate(const std::string& path) const {
  if (!save_as.empty()) check_attribute_name(save_as, path + ".save_as");
}

void RemoveUnconnectedKind::apply(const PostPlace& place) const {
  for (const std::string& name : nodes) {
    const NodeSet& set = nodes_of(place, name);
    std::vector<uint8_t> kept = connected_nodes(place.graph, name);
    if (!ignore.empty()) {
      const std::vector<uint8_t> mask = mask_of(set, ignore, place.path + ".ignore");
      for (size_t i = 0; i < kept.size(); ++i)
        kept[i] |= mask[i];
    }
    if (!save_as.empty() && set.num_nodes() > kMostSaved) {
      throw ConfigError(place.path + ".save_as", concat("'", name, "' has ", set.num_nodes(),
                                                        " nodes; numbers are kept up to 2^24"));
    }
    const std::vector<int32_t> numbers = keep(place, name, kept);
    if (save_as.empty()) continue;
    for (NodeSet& left : place.graph.node_sets)
      if (left.name == name) left.attributes[save_as] = {1, {numbers.begin(), numbers.end()}};
  }
}

void SubAreaKind::bind(config::Binder& b) {
  b.text_list("nodes", nodes, {"node sets"});
  b.number("north", area.north, {.min = -90.0, .max = 90.0}, {"limit, included", "degrees"});
  b.number("west", area.west, {.min = -360.0, .max = 360.0},
           {"limit, included; east of \"east\" where the area crosses the date line", "degrees"});
  b.number("south", area.south, {.min = -90.0, .max = 90.0}, {"limit, included", "degrees"});
  b.number("east", area.east, {.min = -360.0, .max = 360.0}, {"limit, included", "degrees"});
}

void SubAreaKind::validate(const std::string& path) const {
  if (area.north < area.south) {
    throw ConfigError(path + ".north",
                      concat("is ", area.north, ", south of the southern limit ", area.south));
  }
}

void SubAreaKind::apply(const PostPlace& place) const {
  for (const std::string& name : nodes)
    keep(place, name, nodes_in_area(nodes_of(place, name), area));
}

void RestrictLengthKind::bind(config::Binder& b) {
  b.text("source", source, {"node set that the edges start from"});
  b.text("target", target, {"node set that they end at"});
  b.number("max_length_km", max_length_km, {.min = 1e-6, .max = 2.1e4},
           {"longest edge that stays", "km"});
  b.text("source_mask", source_mask,
         {"attribute of the source nodes: where it is 0, edges of any length stay; empty: none"});
  b.text("target_mask", target_mask, {"the same of the target nodes"});
}

void RestrictLengthKind::apply(const PostPlace& place) const {
  EdgeSet& edges = edges_of(place, source, target);
  std::vector<uint8_t> kept = edges_up_to(place.graph, edges, max_length_km);
  const auto spare = [&](const std::string& mask_name, const std::string& nodes,
                         const std::vector<int32_t>& index, const char* key) {
    if (mask_name.empty()) return;
    const auto mask = mask_of(nodes_of(place, nodes), mask_name, place.path + key);
    for (size_t e = 0; e < kept.size(); ++e)
      if (mask[static_cast<size_t>(index[e])] == 0) kept[e] = 1;
  };
  spare(source_mask, source, edges.source_index, ".source_mask");
  spare(target_mask, target, edges.target_index, ".target_mask");
  if (std::find(kept.begin(), kept.end(), 1) == kept.end())
    throw ConfigError(place.path + ".max_length_km", "no edge would be left");
  keep_edges(edges, kept);
  place.recompute(edges);
}

void RemoveSelfEdgesKind::bind(config::Binder& b) {
  b.text("nodes", nodes, {"node set with edges within it"});
}

void RemoveSelfEdgesKind::apply(const PostPlace& place) const {
  EdgeSet& edges = edges_of(place, nodes, nodes);
  std::vector<uint8_t> kept;
  for (size_t e = 0; e < edges.source_index.size(); ++e)
    kept.push_back(edges.source_index[e] != edges.target_index[e] ? 1 : 0);
  if (std::find(kept.begin(), kept.end(), 1) == kept.end())
    throw ConfigError(place.path, concat("no edge of '", nodes, "' would be left"),
                      "more num_neighbours: within one set a node is its own nearest");
  keep_edges(edges, kept);
  place.recompute(edges);
}

void SortEdgesKind::bind(config::Binder& b) {
  b.choice("by", by, {"the end whose number counts"});
  b.boolean("descending", descending, {"highest numbers first"});
}

void SortEdgesKind::apply(const PostPlace& place) const {
  for (EdgeSet& edges : place.graph.edge_sets)
    sort_edges(edges, by, descending);
}

const std::vector<config::Kind<PostKind>>& PostKind::kinds() {
  using config::kind;
  static const std::vector<config::Kind<PostKind>> all{
      kind<PostKind, RemoveUnconnectedKind>("remove_unconnected"),
      kind<PostKind, SubAreaKind>("area"), kind<PostKind, RestrictLengthKind>("restrict_length"),
      kind<PostKind, RemoveSelfEdgesKind>("remove_self_edges"),
      kind<PostKind, SortEdgesKind>("sort_edges")};
  return all;
}

}  // namespace aifs::graph
