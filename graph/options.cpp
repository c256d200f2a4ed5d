// SPDX-License-Identifier: Apache-2.0
#include "graph/options.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "graph/edges/mesh_kinds.h"
#include "graph/edges/neighbour_kinds.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/tri_kinds.h"
#include "graph/weights/weight_kinds.h"

namespace aifs::graph {

using config::Json;

void HiddenOptions::bind(config::Binder& b) {
  kind.bind(b, "kind", {"what the hidden nodes are; tri: refined icosahedron"});
}

void EdgeOptions::bind(config::Binder& b) {
  kind.bind(b, "kind",
            {"cutoff: all source nodes within a radius of every target; knn: its nearest ones; "
             "reversed: from the sources' side; multi_scale: the mesh edges of several levels of "
             "refinement"});
}

void NodeAttributeOptions::bind(config::Binder& b) {
  kind.bind(b, "kind",
            {"what a node counts for: Voronoi area on the sphere, 1, cosine of latitude, latitude "
             "bands, Voronoi area in the plane; or a mask"});
}

void EdgeAttributeOptions::bind(config::Binder& b) {
  kind.bind(b, "kind", {"what the attribute of an edge is"});
}

void PostOptions::bind(config::Binder& b) {
  kind.bind(b, "kind", {"what is done to the graph"});
}

void NodeSetOptions::bind(config::Binder& b) {
  kind.bind(b, "kind", {"what the nodes are; dataset: cells of the dataset that is called so"});
  b.map("attributes", attributes,
        {"attributes of the nodes by name, in the order in which they are computed; names that "
         "begin with \"_\" are dropped at the end"});
}

void EdgeSetOptions::bind(config::Binder& b) {
  b.text("source", source, {"node set that the edges start from"});
  b.text("target", target, {"node set that they end at"});
  b.list("kinds", kinds,
         {"builders of edges; of several, every edge is there once, sorted by source and target"});
  b.map("attributes", attributes,
        {"attributes of the edges by name; empty: edge_length and edge_dirs with the norms "
         "graph.edge_length_norm and graph.edge_dirs_norm"});
}

void EdgeSetOptions::validate(const std::string& path) const {
  if (source.empty()) throw ConfigError(path + ".source", "no node set is named");
  if (target.empty()) throw ConfigError(path + ".target", "no node set is named");
  if (kinds.empty()) throw ConfigError(path + ".kinds", "names no kind of edges");
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].kind->is_none())
      throw ConfigError(concat(path, ".kinds.", i, ".kind"),
                        "is \"none\", which is for the short form of a graph",
                        "leave the whole entry out");
  }
}

void GraphOptions::bind(config::Binder& b) {
  b.text("grid", grid,
         {"data nodes: \"dataset\" takes the coordinates of the dataset, else the name of a "
          "Gaussian grid such as o96 or n320"});
  b.choice("coordinates", coordinates, {"arithmetic that turns degrees into radians"});
  b.section("hidden", hidden, {"hidden nodes"});
  b.section("encoder", encoder, {"edges from data to hidden nodes"});
  b.section("processor", processor, {"edges among hidden nodes; none: the network needs none"});
  b.section("decoder", decoder, {"edges from hidden to data nodes"});
  b.map("nodes", nodes,
        {"node sets by name, in the order in which they are made, in place of \"hidden\"; cells of "
         "datasets need not be listed"});
  b.list("edges", edges,
         {"edges between node sets, in place of \"encoder\", \"processor\" and \"decoder\""});
  b.list("post_process", post_process, {"changes to the finished graph, one after the other"});
  b.choice("edge_length_norm", edge_length_norm, {"how edge lengths are scaled"});
  b.choice("edge_dirs_norm", edge_dirs_norm, {"how edge directions are scaled"});
  b.section("area_weight", area_weight, {"weights of the data nodes"});
  b.integer_or_auto("threads", threads, {.min = 1, .max = 4096},
                    {"threads that build the graph; the result does not depend on it"});
  b.text("file", file,
         {"NetCDF file of the graph: loaded if it exists, else written; empty: not stored"},
         config::TextKind::kPath);
  b.boolean("given", given,
            {"the graph in graph.file is taken as it is, whatever made it (aifs-train graph "
             "import); nothing is built"});
  b.text(
      "cache", cache,
      {"in place of \"file\": folder of the graphs of many runs, found by all that they are built "
       "of; empty: none"},
      config::TextKind::kPath);
}

namespace {

template <class Options>
Json written(const Options& options) {
  Options copy = options;
  return config::write_object(config::fields_of(copy));
}

template <class Options>
void refuse_short(const Options& given, const Options& plain, const std::string& path) {
  if (written(given) == written(plain)) return;
  throw ConfigError(path, "is of the short form, and graph.nodes or graph.edges list a whole graph",
                    "use one of the two; null takes away what a file underneath says");
}

// Between two node sets stands one entry, with as many kinds as it takes.
void check_edges(const std::vector<EdgeSetOptions>& edges, const std::string& path) {
  for (size_t i = 0; i < edges.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (edges[i].source != edges[j].source || edges[i].target != edges[j].target) continue;
      throw ConfigError(
          concat(path, ".edges.", i),
          concat("edges ", edges[i].source, "->", edges[i].target, " stand in entry ", j, ", too"),
          "put all kinds of edges between two node sets into one entry");
    }
  }
}

// Before anything is built: that may take minutes, and the graph file would refuse them at its end.
void check_names(const GraphOptions& options, const std::string& path) {
  for (const auto& [name, set] : options.nodes) {
    const std::string at = concat(path, ".nodes.", name);
    check_set_name(name, at);
    for (const auto& [key, attribute] : set.attributes)
      check_attribute_name(key, concat(at, ".attributes.", key));
  }
  for (size_t i = 0; i < options.edges.size(); ++i) {
    for (const auto& [key, attribute] : options.edges[i].attributes)
      check_attribute_name(key, concat(path, ".edges.", i, ".attributes.", key));
  }
}

// A graph that is there has all its nodes and edges: keys that describe others mean nothing.
void check_given(const GraphOptions& options, const std::string& path) {
  if (options.file.empty()) {
    throw ConfigError(path + ".file", "names no file, and graph.given takes the graph from one",
                      "name one that `aifs-train graph import` or `graph build` wrote");
  }
  config::refuse_unused(options, {"grid", "coordinates", "threads", "file", "given"}, path,
                        "a given graph");
}

void check_short(const GraphOptions& options, const std::string& path) {
  const auto refinement = options.hidden.kind->refinement();
  const auto* multi_scale = options.processor.kind.as<MultiScaleKind>();
  if (!refinement || !multi_scale) return;
  const auto levels = multi_scale->levels_of(*refinement);
  const int64_t finest = *std::max_element(levels.begin(), levels.end());
  if (finest > *refinement) {
    throw ConfigError(path + ".processor.levels",
                      concat("level ", finest, " is finer than the mesh"),
                      concat("hidden.refinement is ", *refinement));
  }
}

}  // namespace

void GraphOptions::validate(const std::string& path) const {
  if (!file.empty() && !cache.empty()) {
    throw ConfigError(path + ".cache", "a folder is named, and a file in graph.file",
                      "use one of the two: \"\" takes away what a file underneath says");
  }
  if (grid != "dataset") {
    try {
      parse_gaussian_grid(grid);
    } catch (const Error& error) {
      throw ConfigError(path + ".grid", error.what(), concat(error.hint(), "; or \"dataset\""));
    }
  }
  if (area_weight.kind->is_mask()) {
    throw ConfigError(
        path + ".area_weight.kind", concat("is \"", area_weight.kind.name(), "\", a mask"),
        "weights of cells are spherical, uniform, cosine_latitude, isolatitude, variable or "
        "planar");
  }
  if (given) return check_given(*this, path);
  if (!is_long()) return check_short(*this, path);
  const GraphOptions plain;
  refuse_short(hidden, plain.hidden, path + ".hidden");
  refuse_short(encoder, plain.encoder, path + ".encoder");
  refuse_short(processor, plain.processor, path + ".processor");
  refuse_short(decoder, plain.decoder, path + ".decoder");
  if (edges.empty())
    throw ConfigError(path + ".edges", "is empty, and graph.nodes lists node sets");
  check_edges(edges, path);
  check_names(*this, path);
}

bool GraphOptions::makes_nodes(const std::string& name) const {
  if (given) return false;
  if (!is_long()) return name == "hidden";
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const auto& entry) { return entry.first == name; });
}

namespace {

// What a short form had as values before there were others, of all kinds in use; null if it has
// more.
Json former_edges(const EdgeOptions& options) {
  CutOffKind cutoff;
  KnnKind knn;
  if (const auto* given = options.kind.as<CutOffKind>()) {
    if (options.kind.name() != "cutoff") return nullptr;
    cutoff = *given;
  } else if (const auto* nearest = options.kind.as<KnnKind>()) {
    knn = *nearest;
  } else {
    return nullptr;
  }
  const bool has_masks =
      !(cutoff.source_mask + cutoff.target_mask + knn.source_mask + knn.target_mask).empty();
  if (has_masks || cutoff.cutoff_distance_km || cutoff.max_neighbours == 0) return nullptr;
  return {{"kind", options.kind.name()},
          {"cutoff_factor", cutoff.cutoff_factor},
          {"max_neighbours", cutoff.max_neighbours},
          {"num_neighbours", knn.num_neighbours}};
}

Json former_weights(const NodeAttributeOptions& options) {
  const auto* weights = options.kind.as<WeightKind>();
  if (!weights || options.kind.as<MaskedPlanarKind>()) return nullptr;
  const CosineLatitudeKind plain;
  const auto* cosine = options.kind.as<CosineLatitudeKind>();
  if (cosine && (cosine->least != plain.least || cosine->most != plain.most)) return nullptr;
  return {{"kind", options.kind.name()}, {"norm", enum_name(weights->norm)}};
}

// The text whose hash files of such graphs have; empty for a graph that there was not.
std::string former_text(const GraphOptions& options) {
  const auto* tri = options.hidden.kind.as<TriKind>();
  const auto* multi_scale = options.processor.kind.as<MultiScaleKind>();
  const Json encoder = former_edges(options.encoder), decoder = former_edges(options.decoder),
             weights = former_weights(options.area_weight);
  if (options.is_long() || !options.post_process.empty() || !tri || !multi_scale ||
      encoder.is_null() || decoder.is_null() || weights.is_null())
    return "";
  return Json{{"grid", options.grid},
              {"coordinates", enum_name(options.coordinates)},
              {"hidden", {{"kind", "tri"}, {"refinement", tri->level}}},
              {"encoder", encoder},
              {"processor",
               {{"kind", "multi_scale"},
                {"levels", multi_scale->levels},
                {"include_level_0", multi_scale->include_level_0},
                {"x_hops", multi_scale->x_hops}}},
              {"decoder", decoder},
              {"edge_length_norm", enum_name(options.edge_length_norm)},
              {"edge_dirs_norm", enum_name(options.edge_dirs_norm)},
              {"area_weight", weights},
              {"threads", "auto"},
              {"file", ""}}
      .dump();
}

// Puts the hash of the file of coordinates in place of its name.
void name_by_content(const NodeKind& kind, Json& json) {
  const std::string file = kind.coordinate_file();
  if (file.empty()) return;
  if (!path_exists(file)) {
    throw DataError(concat("there is no file '", file, "'"),
                    "the coordinates of a graph are in it; a stored graph is known by its content");
  }
  json.at("file") = sha256_hex(MappedFile(file).bytes());
}

}  // namespace

std::string options_hash(const GraphOptions& options) {
  if (const std::string text = former_text(options); !text.empty()) return sha256_hex(text);
  GraphOptions relevant = options;
  relevant.threads.reset();
  relevant.file.clear();
  Json json = written(relevant);
  json.erase("given");
  json.erase("cache");  // files written before there was one have the hash without
  name_by_content(*options.hidden.kind, json["hidden"]);
  for (const auto& [name, nodes] : options.nodes)
    name_by_content(*nodes.kind, json["nodes"][name]);
  return sha256_hex(json.dump());
}

}  // namespace aifs::graph
