// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/neighbour_kinds.h"

#include <limits>

#include "core/check.h"

namespace aifs::graph {

namespace {

std::vector<uint8_t> mask_of(const MeshNodes& nodes, const std::string& name,
                             const std::string& path) {
  if (name.empty()) return {};
  try {
    return nodes.mask(name);
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

void check_number(int64_t neighbours, int64_t num_nodes, const std::string& path) {
  if (neighbours > num_nodes)
    throw ConfigError(path, concat(neighbours, " neighbours of ", num_nodes, " nodes"));
}

void bind_number(config::Binder& b, int64_t& number, const char* text) {
  b.integer("num_neighbours", number, {.min = 1}, {text});
}

void bind_radius(config::Binder& b, CutOffKind& kind, const char* factor, const char* most) {
  b.number("cutoff_factor", kind.cutoff_factor, {.min = 1e-6, .max = 1e6}, {factor});
  b.number_or_null("cutoff_distance_km", kind.cutoff_distance_km, {.min = 1e-6, .max = 1e5},
                   {"radius as a chord of the Earth, in place of the factor", "km"});
  b.integer("max_neighbours", kind.max_neighbours, {.min = 0}, {most});
}

}  // namespace

void NeighbourKind::bind_masks(config::Binder& b) {
  b.text("source_mask", source_mask,
         {"attribute of the source nodes: only those where it is not 0; empty: all"});
  b.text("target_mask", target_mask, {"the same of the target nodes"});
}

EdgeList NeighbourKind::make(const EdgePlace& place) const {
  const auto sources = mask_of(place.source, source_mask, place.path + ".source_mask");
  const auto targets = mask_of(place.target, target_mask, place.path + ".target_mask");
  SearchNodes source(place.source.set, sources), target(place.target.set, targets);
  source.peers = target.peers = place.peers;
  try {
    return search(source, target, place.threads);
  } catch (const ConfigError&) {
    throw;
  } catch (const DataError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(place.path, error.what(), error.hint());
  }
}

void KnnKind::bind(config::Binder& b) {
  bind_number(b, num_neighbours, "edges per target");
  bind_masks(b);
}

void KnnKind::check(const EdgePlace& place) const {
  check_number(num_neighbours, place.source.set.num_nodes(), place.path + ".num_neighbours");
}

EdgeList KnnKind::search(const SearchNodes& source, const SearchNodes& target,
                         int64_t threads) const {
  return knn_edges(source, target, num_neighbours, threads);
}

void ReversedKnnKind::bind(config::Binder& b) {
  bind_number(b, num_neighbours, "edges per source");
  bind_masks(b);
}

void ReversedKnnKind::check(const EdgePlace& place) const {
  check_number(num_neighbours, place.target.set.num_nodes(), place.path + ".num_neighbours");
}

EdgeList ReversedKnnKind::search(const SearchNodes& source, const SearchNodes& target,
                                 int64_t threads) const {
  return reversed_knn_edges(source, target, num_neighbours, threads);
}

void MutualKnnKind::bind(config::Binder& b) {
  bind_number(b, num_neighbours, "the source is one of so many nearest of the target, and ...");
  b.integer_or_auto("reversed_num_neighbours", reversed_num_neighbours, {.min = 1},
                    {"... the target one of so many nearest of the source; auto: as many"});
  bind_masks(b);
}

void MutualKnnKind::check(const EdgePlace& place) const {
  check_number(num_neighbours, place.source.set.num_nodes(), place.path + ".num_neighbours");
  check_number(reversed_num_neighbours.value_or(num_neighbours), place.target.set.num_nodes(),
               place.path + ".reversed_num_neighbours");
}

EdgeList MutualKnnKind::search(const SearchNodes& source, const SearchNodes& target,
                               int64_t threads) const {
  return mutual_knn_edges(source, target, num_neighbours,
                          reversed_num_neighbours.value_or(num_neighbours), threads);
}

void CutOffKind::bind(config::Binder& b) {
  bind_radius(b, *this, "radius as a multiple of the largest distance of a target node to the next",
              "at most so many edges per target, the shortest ones; 0: no limit");
  bind_masks(b);
}

CutOff CutOffKind::limits() const {
  CutOff limits{
      .factor = cutoff_factor,
      .distance_km = cutoff_distance_km,
      .max_neighbours = max_neighbours > 0 ? max_neighbours : std::numeric_limits<int64_t>::max()};
  if (cutoff_distance_km) limits.factor.reset();
  return limits;
}

EdgeList CutOffKind::search(const SearchNodes& source, const SearchNodes& target,
                            int64_t threads) const {
  return cut_off_edges(source, target, limits(), threads);
}

void ReversedCutOffKind::bind(config::Binder& b) {
  bind_radius(b, *this, "radius as a multiple of the largest distance of a source node to the next",
              "at most so many edges per source, the shortest ones; 0: no limit");
  bind_masks(b);
}

EdgeList ReversedCutOffKind::search(const SearchNodes& source, const SearchNodes& target,
                                    int64_t threads) const {
  return reversed_cut_off_edges(source, target, limits(), threads);
}

}  // namespace aifs::graph
