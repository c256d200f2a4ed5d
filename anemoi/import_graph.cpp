// SPDX-License-Identifier: Apache-2.0
// Section "graph": node sets, edges and their attributes. A recipe of one hidden mesh with edges of
// one builder between it and the data becomes the short form, any other the long one.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "anemoi/graph_section.h"
#include "anemoi/sections.h"
#include "core/check.h"
#include "core/join.h"

namespace aifs::anemoi {

namespace {

constexpr const char* kAreaWeight = "area_weight";

// How often an icosahedron is refined to have about so many nodes.
int64_t nearest_refinement(double nodes) {
  const double refinement = std::log2(std::max(1.0, (nodes - 2.0) / 10.0)) / 2.0;
  return std::clamp<int64_t>(std::llround(refinement), 0, 11);
}

// Names of node attributes that something in a recipe refers to.
void add_referred(const Json& json, std::set<std::string>& names) {
  static const std::set<std::string> keys{"source_mask_attr_name",
                                          "target_mask_attr_name",
                                          "mask_attr_name",
                                          "mask_node_attr_name",
                                          "ignore",
                                          "node_attr_name",
                                          "masks"};
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object() && keys.count(key) > 0) {
      for (const Json& name : value.is_array() ? value : Json::array({value}))
        if (name.is_string()) names.insert(name.get<std::string>());
    }
    add_referred(value, names);
  }
}

struct NodeEntry {
  std::string name;
  Place builder;
  Json kind;
  Json attributes = Json::object();
};

struct EdgeEntry {
  std::string source, target;
  std::vector<Place> builders;
  std::vector<Json> kinds;
  Json attributes = Json::object();
};

class GraphReader {
 public:
  explicit GraphReader(const Translation& t) : t_(t) {}

  void read(const Place& graph) {
    add_referred(graph.unseen_whole(), referred_);
    for (const auto& [name, node] : graph["nodes"].members())
      add_nodes(name, node);
    for (const Place& edge : graph["edges"].elements())
      add_edges(edge);
    for (const Place& processor : graph["post_processors"].elements()) {
      Json kind = post_process_kind(processor);
      if (!kind.is_null()) post_.push_back(std::move(kind));
    }
    if (graph["nodes"]) check_all_there(graph["edges"]);
  }

  // False if the network works on meshes that the recipe does not make.
  bool has_all_meshes() const {
    return std::all_of(t_.meshes.begin(), t_.meshes.end(), [&](const std::string& mesh) {
      return std::any_of(nodes_.begin(), nodes_.end(),
                         [&](const NodeEntry& entry) { return entry.name == mesh; });
    });
  }

  void write(const Place& graph, const Section& out) const {
    if (nodes_.empty()) return;
    if (is_short()) return write_short(out);
    for (const NodeEntry& entry : nodes_) {
      Json json = entry.kind;
      if (!entry.attributes.empty()) json["attributes"] = entry.attributes;
      out["nodes"].set(entry.name, std::move(json), entry.builder);
    }
    Json edges = Json::array();
    for (const EdgeEntry& entry : edges_) {
      Json json{{"source", entry.source}, {"target", entry.target}, {"kinds", entry.kinds}};
      if (!entry.attributes.empty()) json["attributes"] = entry.attributes;
      edges.push_back(std::move(json));
    }
    out.set("edges", std::move(edges), graph["edges"]);
    if (!post_.empty()) out.set("post_process", post_, graph["post_processors"]);
  }

 private:
  bool is_data(const std::string& name) const { return contains(t_.datasets, name); }

  void add_nodes(const std::string& name, const Place& node) {
    const Place builder = node["node_builder"];
    NodeEntry entry{name, builder, kind_of_nodes(name, builder)};
    if (entry.kind.is_null()) entry.kind = Json{{"kind", is_data(name) ? "dataset" : "tri"}};
    for (const auto& [key, attribute] : node["attributes"].members()) {
      const bool needed =
          referred_.count(key) > 0 ||
          (is_data(name) && (key == kAreaWeight || contains(t_.node_attributes, key)));
      if (!attribute.is_object() || !needed) {
        attribute.no_effect("no loss and no edges use it");
        continue;
      }
      for (const auto& [own, kind] : node_attribute_kinds(key, attribute))
        entry.attributes[own] = kind;
    }
    nodes_.push_back(std::move(entry));
  }

  Json kind_of_nodes(const std::string& name, const Place& builder) {
    const std::string type = builder.class_name();
    if (type == "HexNodes" || type == "LimitedAreaHexNodes") return in_place_of_hexagons(builder);
    Json kind = node_kind(builder);
    if (kind.is_null()) return kind;
    if (type == "TriNodes" && builder["resolution"].is_list())
      levels_[name] = levels_of(builder["resolution"]);
    for (const char* key : {"refinement", "local_refinement"})
      if (kind.contains(key)) refinement_[name] = kind[key].get<int64_t>();
    return kind;
  }

  static Json in_place_of_hexagons(const Place& builder) {
    const double cells = 2.0 + 120.0 * std::pow(7.0, builder["resolution"].number(0));
    const int64_t refinement = nearest_refinement(cells);
    builder.not_honoured(
        concat("hexagons need the library H3, which is not among ours, so this is another network; "
               "an icosphere of ",
               10 * (int64_t{1} << (2 * refinement)) + 2, " nodes takes their place"));
    Json kind{{"kind", "tri"}, {"refinement", refinement}};
    if (!builder["reference_node_name"]) return kind;
    kind["kind"] = "limited_area_tri";
    kind["reference"] = builder["reference_node_name"].text();
    if (const Place mask = builder["mask_attr_name"]) kind["mask"] = mask.text();
    if (const Place margin = builder["margin_radius_km"]) kind["margin_km"] = margin.number();
    return kind;
  }

  void add_edges(const Place& edge) {
    const std::string source = edge["source_name"].text(), target = edge["target_name"].text();
    EdgeEntry& entry = entry_of(source, target);
    std::vector<Place> builders = edge["edge_builders"].elements();
    if (builders.empty()) builders.push_back(edge["edge_builder"]);
    for (const Place& builder : builders) {
      const auto levels = levels_.find(source);
      Json kind =
          edge_kind(builder, levels == levels_.end() ? std::vector<int64_t>{} : levels->second);
      if (kind.is_null()) continue;
      drop_levels_above(builder, source, kind);
      entry.builders.push_back(builder);
      entry.kinds.push_back(std::move(kind));
    }
    for (const auto& [key, attribute] : edge["attributes"].members()) {
      Json kind = edge_attribute_kind(attribute);
      if (!kind.is_null()) entry.attributes[key] = std::move(kind);
    }
    if (entry.kinds.empty()) edges_.pop_back();
  }

  // Returns the one entry for two node sets, of which a recipe may have several.
  EdgeEntry& entry_of(const std::string& source, const std::string& target) {
    for (EdgeEntry& entry : edges_)
      if (entry.source == source && entry.target == target) return entry;
    edges_.push_back({source, target, {}, {}});
    return edges_.back();
  }

  void drop_levels_above(const Place& builder, const std::string& nodes, Json& kind) const {
    const auto finest = refinement_.find(nodes);
    if (kind["kind"] != "multi_scale" || !kind.contains("levels") || finest == refinement_.end())
      return;
    auto levels = kind["levels"].get<std::vector<int64_t>>();
    if (std::erase_if(levels, [&](int64_t level) { return level > finest->second; }) == 0) return;
    builder["scale_resolutions"].not_honoured("names levels above those of the mesh");
    kind["levels"] = levels;
  }

  void check_all_there(const Place& edges) const {
    if (t_.meshes.size() > 1) return;
    const std::string& mesh = t_.meshes[0];
    const auto require = [&](const std::string& source, const std::string& target) {
      for (const EdgeEntry& entry : edges_)
        if (entry.source == source && entry.target == target) return;
      throw ConfigError(edges.path(), concat("has no edges from '", source, "' to '", target, "'"));
    };
    require(t_.datasets[0], mesh);
    require(mesh, t_.datasets[0]);
    const Json* kind = t_.section("model")["processor"].find("kind");
    if (kind && (*kind == "gnn" || *kind == "graph_transformer")) require(mesh, mesh);
  }

  // True if section "graph" can say it by one hidden mesh: edges and weights of all datasets are
  // alike.
  bool is_short() const {
    if (!post_.empty() || t_.meshes.size() > 1) return false;
    const Json *weights = nullptr, *grid = nullptr;
    for (const NodeEntry& entry : nodes_) {
      if (!is_data(entry.name)) {
        if (entry.name != t_.meshes[0] || !entry.attributes.empty()) return false;
        continue;
      }
      const bool named = entry.kind["kind"] == "gaussian" && !t_.has_several_datasets();
      const bool only_weight = entry.attributes.size() == entry.attributes.count(kAreaWeight);
      if ((entry.kind["kind"] != "dataset" && !named) || !only_weight) return false;
      if (grid && (entry.attributes != *weights || entry.kind != *grid)) return false;
      grid = &entry.kind;
      weights = &entry.attributes;
    }
    return weights && weights->dump().find("masked_planar") == std::string::npos &&
           edges_are_short();
  }

  bool edges_are_short() const {
    std::map<std::string, Json> parts;
    Json attributes;
    size_t mappers = 0;
    for (const EdgeEntry& entry : edges_) {
      const std::string part = part_of(entry);
      if (part.empty() || entry.kinds.size() != 1) return false;
      if (parts.emplace(part, entry.kinds[0]).first->second != entry.kinds[0]) return false;
      if (part != "processor") ++mappers;
      if (entry.attributes.empty()) continue;
      if (!attributes.is_null() && entry.attributes != attributes) return false;
      attributes = entry.attributes;
    }
    return mappers == 2 * t_.datasets.size() && (attributes.is_null() || are_usual(attributes));
  }

  static bool are_usual(const Json& attributes) {
    const auto is = [&](const char* name, const char* kind) {
      return attributes.contains(name) && attributes[name]["kind"] == kind;
    };
    return attributes.size() == 2 && is("edge_length", "length") && is("edge_dirs", "direction");
  }

  std::string part_of(const EdgeEntry& entry) const {
    const std::string& mesh = t_.meshes[0];
    if (is_data(entry.source) && entry.target == mesh) return "encoder";
    if (entry.source == mesh && is_data(entry.target)) return "decoder";
    return entry.source == mesh && entry.target == mesh ? "processor" : "";
  }

  void write_short(const Section& out) const {
    const auto put = [](const Section& section, const Json& json, const Place& origin) {
      for (const auto& [key, value] : json.items())
        section.set(key, value, origin);
    };
    for (const NodeEntry& entry : nodes_) {
      if (!is_data(entry.name)) {
        put(out["hidden"], entry.kind, entry.builder);
      } else if (entry.name == t_.datasets[0]) {
        out.set("grid", entry.kind.value("grid", std::string("dataset")), entry.builder);
        if (entry.attributes.contains(kAreaWeight))
          put(out[kAreaWeight], entry.attributes[kAreaWeight], entry.builder);
      }
    }
    for (const EdgeEntry& entry : edges_) {
      const std::string part = part_of(entry);
      if (out.find(part)) continue;  // of another dataset
      put(out[part], entry.kinds[0], entry.builders[0]);
      if (entry.attributes.empty() || out.find("edge_length_norm")) continue;
      for (const char* name : {"edge_length", "edge_dirs"})
        out.set(concat(name, "_norm"), entry.attributes[name]["norm"], entry.builders[0]);
    }
    if (!out.find("processor")) out["processor"].set("kind", "none");
  }

  const Translation& t_;
  std::set<std::string> referred_;
  std::vector<NodeEntry> nodes_;
  std::vector<EdgeEntry> edges_;
  std::vector<Json> post_;
  std::map<std::string, std::vector<int64_t>> levels_;  // that node sets are made with
  std::map<std::string, int64_t> refinement_;           // of icospheres
};

}  // namespace

bool has_data_edges(const Translation& t) {
  const std::vector<Place> edges = t.root["graph"]["edges"].elements();
  return std::all_of(t.datasets.begin(), t.datasets.end(), [&](const std::string& name) {
    return std::any_of(edges.begin(), edges.end(), [&](const Place& edge) {
      return edge["source_name"].text("") == name && edge["target_name"].text("") == name;
    });
  });
}

// A graph that Anemoi stored is taken as it is, once it is in a file of ours.
void import_stored(const Translation& t, const Place& stored) {
  const std::string file = t.name + "_graph.nc";
  const Section out = t.section("graph");
  out.set("file", file, stored);
  out.set("given", true, stored);
  stored.note(concat("turn the graph into '", file,
                     "' first: tools/anemoi_graph.py, then aifs-train graph import"));
}

void import_graph(Translation& t) {
  const Place graph = t.root["graph"];
  const Place stored = t.root["system"]["input"]["graph"];
  if (!graph["nodes"] && stored) {
    import_stored(t, stored);
  } else if (!graph["nodes"]) {
    graph.not_honoured(
        "names no nodes, and system.input.graph no file: a graph is built by default as in "
        "o96.json");
  } else {
    stored.no_effect("graph.file names a file for the graph here, in another format");
  }
  GraphReader reader(t);
  reader.read(graph);
  reader.write(graph, t.section("graph"));
  if (graph["nodes"] && t.meshes.size() > 1 && !reader.has_all_meshes())
    t.section("graph").set("file", t.name + ".nc", graph["nodes"]);
  graph["overwrite"].no_effect("a graph file is written once");
  for (const char* key : {"attributes", "edge_builders", "data", "hidden"})
    graph[key].no_effect("is meant for references");
}

}  // namespace aifs::anemoi
