// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/multi_scale_edges.h"

#include <algorithm>

#include "core/check.h"
#include "graph/base/kd_tree.h"

namespace aifs::graph {

namespace {

// Calls body(level, faces) for the levels 0 ... last.
template <class Body>
void for_each_level(int64_t last, const Body& body) {
  Faces faces = icosahedron_faces();
  for (int64_t level = 0; level <= last; ++level) {
    if (level > 0) faces = refine_faces(faces, icosphere_vertices(level - 1));
    body(level, faces);
  }
}

// The node of each vertex of a mesh, -1 where the node set has none.
std::vector<int32_t> node_of_vertex(const TriNodes& nodes) {
  std::vector<int32_t> node(static_cast<size_t>(icosphere_vertices(nodes.refinement)), -1);
  for (size_t n = 0; n < nodes.vertex.size(); ++n)
    node[static_cast<size_t>(nodes.vertex[n])] = static_cast<int32_t>(n);
  return node;
}

// The same for a mesh finer than the nodes: the nearest node.
std::vector<int32_t> nearest_node_of_vertex(const TriNodes& nodes, int64_t level) {
  if (nodes.num_nodes() != icosphere_vertices(nodes.refinement)) {
    throw Error(concat("level ", level, " is finer than the mesh (refinement ", nodes.refinement,
                       "), which covers only a part of the sphere"));
  }
  std::vector<float> lat, lon;
  icosphere_coordinates(icosphere_points(level), lat, lon);
  const KdTree<double> tree(unit_vectors<double>(nodes.lat_rad, nodes.lon_rad));
  return tree.nearest(unit_vectors<double>(lat, lon), 1, 1).index;
}

// Calls body(a, b) for all directed edges of a mesh between vertices that are nodes.
template <class Body>
void for_each_edge(const Faces& faces, const std::vector<int32_t>& node, const Body& body) {
  for (const auto& face : faces) {
    for (size_t i = 0; i < 3; ++i) {
      const int32_t a = face[i], b = face[(i + 1) % 3];
      if (node[static_cast<size_t>(a)] >= 0 && node[static_cast<size_t>(b)] >= 0) body(a, b);
    }
  }
}

// Vertices reached from a vertex along mesh edges.
class MeshWalk {
 public:
  MeshWalk(const Faces& faces, const std::vector<int32_t>& node, size_t num_vertices)
      : begin_(num_vertices + 1, 0), last_start_(num_vertices, -1) {
    for_each_edge(faces, node, [&](int32_t a, int32_t) { ++begin_[static_cast<size_t>(a) + 1]; });
    for (size_t v = 1; v < begin_.size(); ++v)
      begin_[v] += begin_[v - 1];
    neighbour_.resize(static_cast<size_t>(begin_.back()));
    std::vector<int64_t> next(begin_.begin(), begin_.end() - 1);
    for_each_edge(faces, node, [&](int32_t a, int32_t b) {
      neighbour_[static_cast<size_t>(next[static_cast<size_t>(a)]++)] = b;
    });
  }

  // All other vertices at most `hops` edges away.
  const std::vector<int32_t>& reached(int32_t start, int64_t hops) {
    reached_.assign(1, start);
    last_start_[static_cast<size_t>(start)] = start;
    size_t first = 0;
    for (int64_t hop = 0; hop < hops; ++hop) {
      const size_t last = reached_.size();
      for (; first < last; ++first)
        add_neighbours(static_cast<size_t>(reached_[first]), start);
    }
    reached_.erase(reached_.begin());
    return reached_;
  }

 private:
  void add_neighbours(size_t vertex, int32_t start) {
    for (int64_t i = begin_[vertex]; i < begin_[vertex + 1]; ++i) {
      const int32_t other = neighbour_[static_cast<size_t>(i)];
      if (last_start_[static_cast<size_t>(other)] == start) continue;
      last_start_[static_cast<size_t>(other)] = start;
      reached_.push_back(other);
    }
  }

  std::vector<int64_t> begin_;
  std::vector<int32_t> neighbour_, reached_;
  std::vector<int32_t> last_start_;  // the walk that met a vertex last
};

EdgeList one_hop_edges(const TriNodes& nodes, const std::vector<int64_t>& levels) {
  const int64_t finest = *std::max_element(levels.begin(), levels.end());
  if (finest > nodes.refinement) {
    throw Error(
        concat("level ", finest, " is finer than the mesh (refinement ", nodes.refinement, ")"));
  }
  const auto node = node_of_vertex(nodes);
  std::vector<EdgeList> edges_of_level(static_cast<size_t>(finest) + 1);
  for_each_level(finest, [&](int64_t level, const Faces& faces) {
    if (std::find(levels.begin(), levels.end(), level) == levels.end()) return;
    EdgeList& edges = edges_of_level[static_cast<size_t>(level)];
    for_each_edge(faces, node, [&](int32_t a, int32_t b) {
      edges.add(node[static_cast<size_t>(a)], node[static_cast<size_t>(b)]);
    });
  });
  EdgeList all;
  for (const int64_t level : levels) {
    const EdgeList& edges = edges_of_level[static_cast<size_t>(level)];
    all.source_index.insert(all.source_index.end(), edges.source_index.begin(),
                            edges.source_index.end());
    all.target_index.insert(all.target_index.end(), edges.target_index.begin(),
                            edges.target_index.end());
  }
  return all;
}

EdgeList many_hop_edges(const TriNodes& nodes, const MultiScale& options) {
  const auto& levels = options.levels;
  const auto node = node_of_vertex(nodes);
  EdgeList by_target;  // with the ends swapped, so that merging sorts by target
  for_each_level(
      *std::max_element(levels.begin(), levels.end()), [&](int64_t level, const Faces& faces) {
        if (std::find(levels.begin(), levels.end(), level) == levels.end()) return;
        const auto vertices = static_cast<size_t>(icosphere_vertices(level));
        const auto& map = level > nodes.refinement ? nearest_node_of_vertex(nodes, level) : node;
        MeshWalk walk(faces, map, vertices);
        EdgeList edges;
        for (size_t v = 0; v < vertices; ++v) {
          if (map[v] < 0) continue;
          for (const int32_t other : walk.reached(static_cast<int32_t>(v), options.x_hops))
            edges.add(map[v], map[static_cast<size_t>(other)]);
        }
        by_target = merge_edges(by_target, edges);
      });
  std::swap(by_target.source_index, by_target.target_index);
  return by_target;
}

}  // namespace

std::vector<int64_t> level_range(int64_t first, int64_t last) {
  std::vector<int64_t> levels;
  for (int64_t level = first; level <= last; ++level)
    levels.push_back(level);
  return levels;
}

EdgeList multi_scale_edges(const TriNodes& nodes, const MultiScale& options) {
  if (options.levels.empty()) throw Error("multi-scale edges need at least one level");
  if (options.x_hops < 1) throw Error(concat("x_hops must be positive, got ", options.x_hops));
  for (const int64_t level : options.levels) {
    if (level < 0 || level > kMaxRefinement) {
      throw Error(concat("a level must be from 0 to ", kMaxRefinement, ", got ", level));
    }
  }
  return options.x_hops == 1 ? one_hop_edges(nodes, options.levels)
                             : many_hop_edges(nodes, options);
}

}  // namespace aifs::graph
