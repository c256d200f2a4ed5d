// SPDX-License-Identifier: Apache-2.0
#include "graph/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "core/shares.h"

namespace aifs::graph {

namespace {

constexpr int kHilbertBits = 20;  // per axis of a face: finer than any mesh

// Distance along a Hilbert curve through a 2^bits square (the usual bit-by-bit rotation).
uint64_t hilbert_distance(uint32_t x, uint32_t y) {
  uint64_t distance = 0;
  for (uint32_t side = 1u << (kHilbertBits - 1); side > 0; side >>= 1) {
    const uint32_t right = (x & side) ? 1 : 0, up = (y & side) ? 1 : 0;
    distance += static_cast<uint64_t>(side) * side * ((3 * right) ^ up);
    if (up == 0) {
      if (right == 1) {
        x = (side - 1) - (x & (side - 1));
        y = (side - 1) - (y & (side - 1));
      }
      std::swap(x, y);
    }
    x &= side - 1;
    y &= side - 1;
  }
  return distance;
}

// Face of the cube, then the curve on it. Faces follow each other around the equator, poles last.
uint64_t curve_position(double lat_rad, double lon_rad) {
  const double x = std::cos(lat_rad) * std::cos(lon_rad);
  const double y = std::cos(lat_rad) * std::sin(lon_rad);
  const double z = std::sin(lat_rad);
  const double ax = std::abs(x), ay = std::abs(y), az = std::abs(z);
  uint64_t face = 0;
  double u = 0.0, v = 0.0;
  if (az > ax && az > ay) {
    face = z > 0 ? 0 : 5;
    u = x / az, v = y / az;
  } else if (ax >= ay) {
    face = x > 0 ? 1 : 3;
    u = (x > 0 ? y : -y) / ax, v = z / ax;
  } else {
    face = y > 0 ? 2 : 4;
    u = (y > 0 ? -x : x) / ay, v = z / ay;
  }
  const double scale = static_cast<double>((1u << kHilbertBits) - 1);
  const auto cell = [&](double w) {
    return static_cast<uint32_t>(std::clamp((w + 1.0) / 2.0, 0.0, 1.0) * scale);
  };
  return (face << (2 * kHilbertBits)) + hilbert_distance(cell(u), cell(v));
}

template <class Key>
std::vector<int32_t> order_by(const std::vector<Key>& keys) {
  std::vector<int32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  return order;
}

// Ranks of n rows shared out evenly, in order.
std::vector<int32_t> even_owners(int64_t n, int64_t num_ranks) {
  const std::vector<int64_t> counts = balanced_counts(n, num_ranks);
  std::vector<int32_t> owners;
  owners.reserve(static_cast<size_t>(n));
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    owners.insert(owners.end(), static_cast<size_t>(counts[static_cast<size_t>(rank)]),
                  static_cast<int32_t>(rank));
  }
  return owners;
}

// Every (needing rank, source node) pair that crosses ranks, once.
std::vector<std::pair<int32_t, int32_t>> crossings(const EdgeSet& edges,
                                                   const NodePartition& sources,
                                                   const NodePartition& targets) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    const int32_t source = edges.source_index[e];
    const int32_t needs = targets.owner(edges.target_index[e]);
    if (needs != sources.owner(source)) pairs.emplace_back(needs, source);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

int64_t rows_moved(const Graph& graph, const GraphPartition& partition, int64_t layers) {
  int64_t rows = 0;
  for (const EdgeSet& edges : graph.edge_sets) {
    rows +=
        (edges.source == edges.target ? layers : 1) *
        exchange_volume(edges, partition.of(edges.source), partition.of(edges.target)).halo_rows;
  }
  return rows;
}

}  // namespace

NodePartition::NodePartition(std::vector<int32_t> owner, int64_t num_ranks)
    : owner_(std::move(owner)) {
  AIFS_CHECK(num_ranks > 0, num_ranks, " ranks");
  begin_.assign(static_cast<size_t>(num_ranks) + 1, 0);
  local_.reserve(owner_.size());
  for (const int32_t rank : owner_) {
    AIFS_CHECK(rank >= 0 && rank < num_ranks, "owner ", rank, " of ", num_ranks, " ranks");
    local_.push_back(static_cast<int32_t>(begin_[static_cast<size_t>(rank) + 1]++));
  }
  for (size_t r = 0; r < static_cast<size_t>(num_ranks); ++r)
    begin_[r + 1] += begin_[r];
  nodes_.resize(owner_.size());
  for (size_t node = 0; node < owner_.size(); ++node) {
    const int64_t place = begin_[static_cast<size_t>(owner_[node])] + local_[node];
    nodes_[static_cast<size_t>(place)] = static_cast<int32_t>(node);
  }
}

NodePartition NodePartition::contiguous(int64_t num_nodes, int64_t num_ranks) {
  return NodePartition(even_owners(num_nodes, num_ranks), num_ranks);
}

NodePartition NodePartition::along(const std::vector<int32_t>& order, int64_t num_ranks) {
  const std::vector<int32_t> owners = even_owners(static_cast<int64_t>(order.size()), num_ranks);
  std::vector<int32_t> owner(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    owner[static_cast<size_t>(order[i])] = owners[i];
  return NodePartition(std::move(owner), num_ranks);
}

int64_t NodePartition::num_owned(int64_t rank) const {
  return begin_[static_cast<size_t>(rank) + 1] - begin_[static_cast<size_t>(rank)];
}

std::vector<int64_t> NodePartition::counts() const {
  std::vector<int64_t> counts;
  for (int64_t rank = 0; rank < num_ranks(); ++rank)
    counts.push_back(num_owned(rank));
  return counts;
}

std::vector<int64_t> NodePartition::owned(int64_t rank) const {
  return {nodes_.begin() + begin_[static_cast<size_t>(rank)],
          nodes_.begin() + begin_[static_cast<size_t>(rank) + 1]};
}

bool NodePartition::in_node_order() const {
  return std::is_sorted(owner_.begin(), owner_.end());
}

const NodePartition& GraphPartition::of(const std::string& nodes) const {
  if (nodes == "data") return data;
  const auto found = meshes.find(nodes);
  if (found == meshes.end()) throw Error(concat("nodes '", nodes, "' are not divided over ranks"));
  return found->second;
}

std::vector<int32_t> hilbert_order(const NodeSet& nodes) {
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < nodes.lat_rad.size(); ++i)
    keys.push_back(curve_position(nodes.lat_rad[i], nodes.lon_rad[i]));
  return order_by(keys);
}

std::vector<int32_t> latitude_order(const NodeSet& nodes) {
  std::vector<std::pair<float, float>> keys;
  for (size_t i = 0; i < nodes.lat_rad.size(); ++i)
    keys.emplace_back(-nodes.lat_rad[i], nodes.lon_rad[i]);
  return order_by(keys);
}

ExchangeVolume exchange_volume(const EdgeSet& edges, const NodePartition& sources,
                               const NodePartition& targets) {
  return {static_cast<int64_t>(crossings(edges, sources, targets).size()),
          sources.num_nodes() * (sources.num_ranks() - 1)};
}

GraphPartition make_partition(const Graph& graph, int64_t num_ranks, HiddenOrder order,
                              int64_t layers) {
  return make_partition(graph.node_sets, num_ranks, order, [&](const GraphPartition& partition) {
    return rows_moved(graph, partition, layers);
  });
}

GraphPartition make_partition(const std::vector<NodeSet>& node_sets, int64_t num_ranks,
                              HiddenOrder order,
                              const std::function<int64_t(const GraphPartition&)>& rows_moved) {
  const auto divide = [&](const auto& mesh_partition) {
    GraphPartition partition;
    for (const NodeSet& nodes : node_sets) {
      if (nodes.name == "data") {
        partition.data = NodePartition::contiguous(nodes.num_nodes(), num_ranks);
      } else {
        partition.meshes[nodes.name] = mesh_partition(nodes);
      }
    }
    return partition;
  };
  const auto along = [&](std::vector<int32_t> (*path)(const NodeSet&)) {
    return divide(
        [&](const NodeSet& nodes) { return NodePartition::along(path(nodes), num_ranks); });
  };
  if (order == HiddenOrder::kMesh || num_ranks == 1) {
    return divide([&](const NodeSet& nodes) {
      return NodePartition::contiguous(nodes.num_nodes(), num_ranks);
    });
  }
  if (order == HiddenOrder::kLatitude) return along(latitude_order);
  if (order == HiddenOrder::kHilbert) return along(hilbert_order);
  GraphPartition bands = along(latitude_order), curve = along(hilbert_order);
  return rows_moved(bands) <= rows_moved(curve) ? bands : curve;
}

namespace {

// Who sends what to this rank and what it sends, and the nodes it receives, grouped by owner.
std::vector<std::pair<int32_t, int32_t>> plan_halo(const EdgeSet& edges,
                                                   const NodePartition& sources,
                                                   const NodePartition& targets, int32_t me,
                                                   ExchangePlan& plan) {
  std::vector<std::pair<int32_t, int32_t>> needed;  // owner, node
  for (const auto& [needs, node] : crossings(edges, sources, targets)) {
    if (sources.owner(node) == me) {
      plan.send_rows.push_back(sources.local(node));
      ++plan.send_counts[static_cast<size_t>(needs)];
    } else if (needs == me) {
      needed.emplace_back(sources.owner(node), node);
      ++plan.recv_counts[static_cast<size_t>(sources.owner(node))];
    }
  }
  std::sort(needed.begin(), needed.end());  // ascending within an owner: as it sends them
  return needed;
}

}  // namespace

LocalEdgeSet local_edges(const EdgeSet& edges, const NodePartition& sources,
                         const NodePartition& targets, int64_t rank, SourceRows rows) {
  const auto me = static_cast<int32_t>(rank);
  LocalEdgeSet mine;
  mine.exchange.send_counts.assign(static_cast<size_t>(sources.num_ranks()), 0);
  mine.exchange.recv_counts = mine.exchange.send_counts;
  std::vector<std::pair<int32_t, int32_t>> needed;
  if (rows == SourceRows::kHalo) needed = plan_halo(edges, sources, targets, me, mine.exchange);
  const int64_t num_own = sources.num_owned(rank);
  mine.num_sources = rows == SourceRows::kHalo ? num_own + static_cast<int64_t>(needed.size())
                                               : sources.num_nodes();
  const auto number = [&](int32_t node) -> int64_t {
    if (rows == SourceRows::kAll) return sources.begin(sources.owner(node)) + sources.local(node);
    if (sources.owner(node) == me) return sources.local(node);
    const auto found =
        std::lower_bound(needed.begin(), needed.end(), std::pair(sources.owner(node), node));
    return num_own + (found - needed.begin());
  };

  const std::vector<int32_t> by_target = order_by(edges.target_index);
  for (size_t position = 0; position < by_target.size(); ++position) {
    const auto e = static_cast<size_t>(by_target[position]);
    const int32_t target = edges.target_index[e];
    if (targets.owner(target) != me) continue;
    mine.position.push_back(static_cast<int64_t>(position));
    mine.source_index.push_back(static_cast<int32_t>(number(edges.source_index[e])));
    mine.target_index.push_back(targets.local(target));
  }
  return mine;
}

}  // namespace aifs::graph
