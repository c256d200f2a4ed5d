// SPDX-License-Identifier: Apache-2.0
#include "graph/options.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "graph/edges/multi_scale_edges.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/icosphere.h"

namespace aifs::graph {

void HiddenOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"mesh of the hidden nodes; tri: refined icosahedron"});
  b.integer("refinement", refinement, {.min = 0, .max = kMaxRefinement},
            {"how often the icosahedron's edges are halved; 10 * 4^refinement + 2 nodes"});
}

void MapperEdgeOptions::bind(config::Binder& b) {
  b.tag("kind", kind,
        {"cutoff: all source nodes within a radius of every target; knn: its nearest ones"});
  b.number("cutoff_factor", cutoff_factor, {.min = 1e-6, .max = 1e6},
           {"radius as a multiple of the largest distance of a target node to the next"});
  b.read_by({"cutoff"});
  b.integer("max_neighbours", max_neighbours, {.min = 1},
            {"at most so many edges per target, the shortest ones"});
  b.read_by({"cutoff"});
  b.integer("num_neighbours", num_neighbours, {.min = 1}, {"edges per target"});
  b.read_by({"knn"});
}

void ProcessorEdgeOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"multi_scale: the mesh edges of several levels of refinement"});
  b.integer_list("levels", levels, {.min = 0, .max = kMaxRefinement},
                 {"levels of refinement; empty: 1 to hidden.refinement"});
  b.boolean("include_level_0", include_level_0,
            {"with an empty list: also the edges of the icosahedron"});
  b.integer("x_hops", x_hops, {.min = 1, .max = 100},
            {"joins nodes up to so many mesh edges apart"});
}

std::vector<int64_t> ProcessorEdgeOptions::levels_of(int64_t refinement) const {
  if (!levels.empty()) return levels;
  return level_range(include_level_0 || refinement == 0 ? 0 : 1, refinement);
}

void AreaWeightOptions::bind(config::Binder& b) {
  b.choice("kind", kind,
           {"what a data node counts for: Voronoi area on the sphere, 1, cosine of "
            "latitude, latitude bands, Voronoi area in the plane"});
  b.choice("norm", norm, {"how the weights are scaled"});
}

void GraphOptions::bind(config::Binder& b) {
  b.text("grid", grid,
         {"data nodes: \"dataset\" takes the coordinates of the dataset, else the name of a "
          "Gaussian grid such as o96 or n320"});
  b.choice("coordinates", coordinates, {"arithmetic that turns degrees into radians"});
  b.section("hidden", hidden, {"hidden nodes"});
  b.section("encoder", encoder, {"edges from data to hidden nodes"});
  b.section("processor", processor, {"edges among hidden nodes"});
  b.section("decoder", decoder, {"edges from hidden to data nodes"});
  b.choice("edge_length_norm", edge_length_norm, {"how edge lengths are scaled"});
  b.choice("edge_dirs_norm", edge_dirs_norm, {"how edge directions are scaled"});
  b.section("area_weight", area_weight, {"weights of the data nodes"});
  b.integer_or_auto("threads", threads, {.min = 1, .max = 4096},
                    {"threads that build the graph; the result does not depend on it"});
  b.text("file", file,
         {"NetCDF file of the graph: loaded if it exists, else written; empty: not stored"},
         config::TextKind::kPath);
}

void GraphOptions::validate(const std::string& path) const {
  if (grid != "dataset") {
    try {
      parse_gaussian_grid(grid);
    } catch (const Error& error) {
      throw ConfigError(path + ".grid", error.what(), concat(error.hint(), "; or \"dataset\""));
    }
  }
  const auto levels = processor.levels_of(hidden.refinement);
  const int64_t finest = *std::max_element(levels.begin(), levels.end());
  if (finest > hidden.refinement) {
    throw ConfigError(path + ".processor.levels",
                      concat("level ", finest, " is finer than the mesh"),
                      concat("hidden.refinement is ", hidden.refinement));
  }
}

namespace {

// All values, with those that no kind reads: stored hashes are of these.
config::Json all_values(const std::vector<config::Field>& fields) {
  config::Json values = config::Json::object();
  for (const config::Field& field : fields)
    values[field.key] =
        field.kind == config::Field::Kind::kSection ? all_values(field.children) : field.write();
  return values;
}

}  // namespace

std::string options_hash(const GraphOptions& options) {
  GraphOptions relevant = options;
  relevant.threads.reset();
  relevant.file.clear();
  return sha256_hex(all_values(config::fields_of(relevant)).dump());
}

}  // namespace aifs::graph
