// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_part.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/shares.h"
#include "graph/graph_slice.h"

namespace aifs::graph {

namespace {

// A stable order of items by a number below `num_groups`, and how many there are of each.
struct Grouping {
  std::vector<int64_t> order;   // items, group after group
  std::vector<int64_t> counts;  // (groups)

  template <class Group>  // group(item)
  Grouping(size_t num_items, int64_t num_groups, const Group& group)
      : order(num_items), counts(static_cast<size_t>(num_groups), 0) {
    for (size_t item = 0; item < num_items; ++item)
      ++counts[static_cast<size_t>(group(item))];
    std::vector<int64_t> next = starts_of(counts);
    for (size_t item = 0; item < num_items; ++item)
      order[static_cast<size_t>(next[static_cast<size_t>(group(item))]++)] =
          static_cast<int64_t>(item);
  }
};

// Takes rows in another order; the old ones go.
template <class T>
std::vector<T> reordered(std::vector<T> values, const std::vector<int64_t>& order,
                         int64_t width = 1) {
  std::vector<T> result;
  result.reserve(values.size());
  for (const int64_t row : order)
    result.insert(result.end(), values.begin() + row * width, values.begin() + (row + 1) * width);
  return result;
}

// Where the edges of each own target begin in the whole list sorted by target. Targets have
// `degrees` edges on this rank, which are all that they have.
std::vector<int64_t> starts_in_whole(const std::vector<int64_t>& degrees,
                                     const NodePartition& targets, Peers& peers) {
  const std::vector<int32_t> own(degrees.begin(), degrees.end());
  const std::vector<int32_t> all = gather(peers, own).values;  // by rank, then by local number
  std::vector<int64_t> starts;
  starts.reserve(degrees.size());
  int64_t before = 0;
  for (int64_t node = 0; node < targets.num_nodes(); ++node) {
    const int32_t owner = targets.owner(node);
    if (owner == peers.rank()) starts.push_back(before);
    before += all[static_cast<size_t>(targets.begin(owner) + targets.local(node))];
  }
  return starts;
}

// Edges in numbers of the whole graph, sorted by target.
struct SortedEdges {
  std::vector<int32_t> source_index, target_index;
};

// Takes the edges that end at own nodes into `own`, but for their numbers here.
SortedEdges take_edges(EdgeSet slice, const NodePartition& targets, OwnEdges& own, Peers& peers) {
  const std::vector<int32_t> ends = std::move(slice.target_index);
  const Grouping by_owner(ends.size(), peers.size(),
                          [&](size_t e) { return targets.owner(ends[e]); });
  const auto given = [&](auto values, int64_t width) {
    return exchange(peers, reordered(std::move(values), by_owner.order, width), by_owner.counts,
                    width)
        .values;
  };
  const std::vector<int32_t> mine = given(ends, 1);
  const Grouping by_target(mine.size(), targets.num_owned(peers.rank()),
                           [&](size_t e) { return targets.local(mine[e]); });
  const auto taken = [&](auto values, int64_t width) {
    return reordered(given(std::move(values), width), by_target.order, width);
  };
  SortedEdges sorted{taken(std::move(slice.source_index), 1), reordered(mine, by_target.order)};
  for (auto& [name, attribute] : slice.attributes)
    own.attributes[name] = {attribute.width, taken(std::move(attribute.values), attribute.width)};
  const std::vector<int64_t> starts = starts_in_whole(by_target.counts, targets, peers);
  own.local.position.reserve(mine.size());
  for (size_t node = 0; node < starts.size(); ++node)
    for (int64_t i = 0; i < by_target.counts[node]; ++i)
      own.local.position.push_back(starts[node] + i);
  return sorted;
}

using OwnedNodes = std::vector<std::pair<int32_t, int32_t>>;  // owner, node

// Nodes of other ranks where edges start, once, by owner.
OwnedNodes needed_nodes(const SortedEdges& edges, const NodePartition& sources, int64_t rank) {
  OwnedNodes needed;
  for (const int32_t node : edges.source_index)
    if (sources.owner(node) != rank) needed.emplace_back(sources.owner(node), node);
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  return needed;
}

// Asks the owners for the rows of these nodes, so that they know what to send.
ExchangePlan plan_exchange(const OwnedNodes& needed, const NodePartition& sources, Peers& peers) {
  ExchangePlan plan;
  plan.recv_counts.assign(static_cast<size_t>(peers.size()), 0);
  std::vector<int32_t> nodes;
  for (const auto& [owner, node] : needed) {
    ++plan.recv_counts[static_cast<size_t>(owner)];
    nodes.push_back(node);
  }
  const Grouped<int32_t> asked = exchange(peers, nodes, plan.recv_counts);
  plan.send_counts = asked.counts;
  for (const int32_t node : asked.values)
    plan.send_rows.push_back(sources.local(node));
  return plan;
}

// Gives edges the numbers that their ends have on this rank.
void number_ends(const SortedEdges& edges, const NodePartition& sources,
                 const NodePartition& targets, SourceRows rows, LocalEdgeSet& local, Peers& peers) {
  const int64_t num_own = sources.num_owned(peers.rank());
  local.exchange.send_counts.assign(static_cast<size_t>(peers.size()), 0);
  local.exchange.recv_counts = local.exchange.send_counts;
  local.num_sources = sources.num_nodes();
  OwnedNodes needed;
  if (rows == SourceRows::kHalo) {
    needed = needed_nodes(edges, sources, peers.rank());
    local.exchange = plan_exchange(needed, sources, peers);
    local.num_sources = num_own + static_cast<int64_t>(needed.size());
  }
  const auto number = [&](int32_t node) -> int64_t {
    const int32_t owner = sources.owner(node);
    if (rows == SourceRows::kAll) return sources.begin(owner) + sources.local(node);
    if (owner == peers.rank()) return sources.local(node);
    const auto found = std::lower_bound(needed.begin(), needed.end(), std::pair(owner, node));
    return num_own + (found - needed.begin());
  };
  for (const int32_t node : edges.source_index)
    local.source_index.push_back(static_cast<int32_t>(number(node)));
  for (const int32_t node : edges.target_index)
    local.target_index.push_back(targets.local(node));
}

}  // namespace

GraphPart take_part(GraphSlice slice, const GraphPartition& partition, SourceRows mapper_sources,
                    Peers& peers) {
  GraphPart part;
  part.graph.node_sets = std::move(slice.graph.node_sets);
  for (size_t i = 0; i < slice.ranges.size(); ++i) {
    EdgeSet& edges = slice.graph.edge_sets[i];
    EdgeSet& outline = part.graph.edge_sets.emplace_back();
    outline.source = edges.source;
    outline.target = edges.target;
    for (const auto& [name, attribute] : edges.attributes)
      outline.attributes[name] = {attribute.width, {}};
    const NodePartition &sources = partition.of(edges.source),
                        &targets = partition.of(edges.target);
    const bool is_mapper = edges.source != edges.target;
    OwnEdges& own = part.own.emplace_back();
    own.total = slice.ranges[i].total;
    const SortedEdges sorted = take_edges(std::move(edges), targets, own, peers);
    number_ends(sorted, sources, targets, is_mapper ? mapper_sources : SourceRows::kHalo, own.local,
                peers);
  }
  return part;
}

EdgeTraffic traffic_of(const OwnEdges& own, Peers& peers) {
  const auto edges = static_cast<int64_t>(own.local.position.size());
  return {gather(peers, std::vector<int64_t>{edges}).values,
          gather(peers, own.local.exchange.recv_counts).values};
}

}  // namespace aifs::graph
