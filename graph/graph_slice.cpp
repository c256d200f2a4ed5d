// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_slice.h"

#include <algorithm>
#include <exception>

#include "core/check.h"
#include "core/shares.h"
#include "graph/base/parallel_for.h"

namespace aifs::graph {

namespace {

template <class T>
std::vector<T> part_of(const std::vector<T>& values, const EdgeRange& range, int64_t width = 1) {
  return {values.begin() + range.begin * width, values.begin() + range.end * width};
}

// Gives the pieces of one array after another to the sink of the first rank.
class Giver {
 public:
  Giver(Peers& peers, PieceSink& sink) : peers_(peers), sink_(sink) {}

  // Calls step(sink) on the first rank, if nothing has failed there.
  template <class Step>
  void tell(const Step& step) {
    if (peers_.rank() != 0 || error_) return;
    try {
      step(sink_);
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  template <class T>
  void give(const std::vector<T>& own) {
    const std::vector<T> nothing;
    for (int64_t sender = 0; sender < peers_.size(); ++sender) {
      if (sender == 0) {
        tell([&](PieceSink& sink) { sink.piece(std::span<const T>(own)); });
        continue;
      }
      const bool gives = sender == peers_.rank();
      std::vector<int64_t> counts(static_cast<size_t>(peers_.size()), 0);
      if (gives) counts[0] = static_cast<int64_t>(own.size());
      const std::vector<T> piece = exchange(peers_, gives ? own : nothing, counts).values;
      tell([&](PieceSink& sink) { sink.piece(std::span<const T>(piece)); });
    }
  }
  void finish() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Peers& peers_;
  PieceSink& sink_;
  std::exception_ptr error_;
};

// Sums over ranks of equally many numbers of each: every rank adds up a share of them.
std::vector<int32_t> sums_over(Peers& peers, const std::vector<int32_t>& numbers) {
  const std::vector<int64_t> shares =
      balanced_counts(static_cast<int64_t>(numbers.size()), peers.size());
  const std::vector<int32_t> parts = exchange(peers, numbers, shares).values;
  std::vector<int32_t> sums(static_cast<size_t>(shares[static_cast<size_t>(peers.rank())]), 0);
  for (size_t i = 0; i < parts.size(); ++i)
    sums[i % sums.size()] += parts[i];
  return gather(peers, sums).values;
}

DegreeStatistics degrees_over(Peers& peers, const std::vector<int32_t>& index, int64_t num_nodes) {
  return degree_statistics(sums_over(peers, degrees_of_nodes(index, num_nodes)));
}

// Pairs of a rank that needs the row of a node of another, once, packed into one number.
std::vector<int64_t> crossing_pairs(const EdgeSet& edges, const NodePartition& sources,
                                    const NodePartition& targets) {
  std::vector<int64_t> pairs;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    const int32_t source = edges.source_index[e], needs = targets.owner(edges.target_index[e]);
    if (needs != sources.owner(source)) pairs.push_back((int64_t{needs} << 32) | source);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

// Rows that cross ranks for all edges of a set: the rank that needs them counts them.
int64_t halo_rows(const EdgeSet& edges, const NodePartition& sources, const NodePartition& targets,
                  Peers& peers) {
  const std::vector<int64_t> pairs = crossing_pairs(edges, sources, targets);
  std::vector<int64_t> counts(static_cast<size_t>(peers.size()), 0);
  for (const int64_t pair : pairs)
    ++counts[static_cast<size_t>(pair >> 32)];
  std::vector<int64_t> mine = exchange(peers, pairs, counts).values;
  std::sort(mine.begin(), mine.end());
  const auto last = std::unique(mine.begin(), mine.end());
  return sum_over(peers, last - mine.begin());
}

}  // namespace

EdgeRange edge_range(int64_t total, int64_t rank, int64_t size) {
  const std::vector<int64_t> starts = starts_of(balanced_counts(num_blocks(total), size));
  const auto r = static_cast<size_t>(rank);
  return {std::min(total, starts[r] * kBlockItems), std::min(total, starts[r + 1] * kBlockItems),
          total};
}

EdgeList in_ranges(const EdgeList& part, Peers& peers) {
  const std::vector<int64_t> begins =
      starts_of(gather(peers, std::vector<int64_t>{part.num_edges()}).values);
  const auto rank = static_cast<size_t>(peers.rank());
  std::vector<int64_t> counts;
  for (int64_t receiver = 0; receiver < peers.size(); ++receiver) {
    const EdgeRange range = edge_range(begins.back(), receiver, peers.size());
    const int64_t begin = std::max(range.begin, begins[rank]),
                  end = std::min(range.end, begins[rank + 1]);
    counts.push_back(std::max<int64_t>(0, end - begin));
  }
  EdgeList mine;
  mine.source_index = exchange(peers, part.source_index, counts).values;
  mine.target_index = exchange(peers, part.target_index, counts).values;
  return mine;
}

GraphSlice slice_of(const Graph& graph, int64_t rank, int64_t size) {
  GraphSlice slice;
  slice.graph.node_sets = graph.node_sets;
  for (const EdgeSet& edges : graph.edge_sets) {
    const EdgeRange range = edge_range(edges.num_edges(), rank, size);
    EdgeSet& mine = slice.graph.edge_sets.emplace_back();
    mine.source = edges.source;
    mine.target = edges.target;
    mine.source_index = part_of(edges.source_index, range);
    mine.target_index = part_of(edges.target_index, range);
    for (const auto& [name, attribute] : edges.attributes)
      mine.attributes[name] = {attribute.width, part_of(attribute.values, range, attribute.width)};
    slice.ranges.push_back(range);
  }
  return slice;
}

void give_pieces(const GraphSlice& slice, Peers& peers, PieceSink& sink) {
  Giver giver(peers, sink);
  for (const NodeSet& nodes : slice.graph.node_sets)
    giver.tell([&](PieceSink& to) { to.nodes(nodes); });
  for (size_t i = 0; i < slice.ranges.size(); ++i) {
    const EdgeSet& edges = slice.graph.edge_sets[i];
    giver.tell([&](PieceSink& to) { to.edges(edges, slice.ranges[i].total); });
    giver.tell([&](PieceSink& to) { to.ends("source_index"); });
    giver.give(edges.source_index);
    giver.tell([&](PieceSink& to) { to.ends("target_index"); });
    giver.give(edges.target_index);
    for (const auto& entry : edges.attributes) {
      giver.tell([&](PieceSink& to) { to.attribute(entry.first, entry.second.width); });
      giver.give(entry.second.values);
    }
  }
  giver.finish();
}

void HashSink::nodes(const NodeSet& nodes) {
  hash_.text(nodes.name);
  hash_.values(std::span<const float>(nodes.lat_rad));
  hash_.values(std::span<const float>(nodes.lon_rad));
  for (const auto& [name, attribute] : nodes.attributes) {
    hash_.text(name);
    hash_.width(attribute.width);
    hash_.values(std::span<const float>(attribute.values));
  }
}

void HashSink::edges(const EdgeSet& edges, int64_t total) {
  hash_.text(edges.source);
  hash_.text(edges.target);
  total_ = total;
}

void HashSink::ends(const std::string&) {
  hash_.count(total_);
}

void HashSink::attribute(const std::string& name, int64_t width) {
  hash_.text(name);
  hash_.width(width);
  hash_.count(total_ * width);
}

std::string text_of_first(const std::string& text, Peers& peers) {
  const std::vector<char> own(text.begin(), peers.rank() == 0 ? text.end() : text.begin());
  const std::vector<char> all = gather(peers, own).values;
  return {all.begin(), all.end()};
}

std::string content_hash(const GraphSlice& slice, Peers& peers) {
  HashSink hash;
  give_pieces(slice, peers, hash);
  return text_of_first(peers.rank() == 0 ? hash.finish() : "", peers);
}

GraphStatistics degrees_of(const GraphSlice& slice, Peers& peers) {
  GraphStatistics statistics;
  const Graph& graph = slice.graph;
  for (const NodeSet& nodes : graph.node_sets)
    statistics.node_sets.push_back({nodes.name, nodes.num_nodes(), is_data(nodes), {}});
  for (size_t i = 0; i < slice.ranges.size(); ++i) {
    const EdgeSet& edges = graph.edge_sets[i];
    EdgeSetStatistics& set = statistics.edge_sets.emplace_back();
    set.source = edges.source;
    set.target = edges.target;
    set.num_edges = slice.ranges[i].total;
    set.sources = degrees_over(peers, edges.source_index, graph.nodes(edges.source).num_nodes());
    set.targets = degrees_over(peers, edges.target_index, graph.nodes(edges.target).num_nodes());
  }
  return statistics;
}

GraphReport report_of(const GraphSlice& slice, Peers& peers) {
  GraphReport report = report_of(degrees_of(slice, peers));
  for (size_t i = 0; i < slice.ranges.size(); ++i) {
    const EdgeSet& edges = slice.graph.edge_sets[i];
    const std::vector<LengthBlock> own = edge_length_blocks_km(
        edges, slice.graph.nodes(edges.source), slice.graph.nodes(edges.target), /*threads=*/0);
    report.edge_sets[i].length_km =
        spread_of_blocks(gather(peers, own).values, slice.ranges[i].total);
  }
  return report;
}

GraphPartition make_partition(const GraphSlice& slice, HiddenOrder order, int64_t layers,
                              Peers& peers) {
  const auto rows_moved = [&](const GraphPartition& partition) {
    int64_t rows = 0;
    for (const EdgeSet& edges : slice.graph.edge_sets) {
      rows += (edges.source == edges.target ? layers : 1) *
              halo_rows(edges, partition.of(edges.source), partition.of(edges.target), peers);
    }
    return rows;
  };
  return make_partition(slice.graph.node_sets, peers.size(), order, rows_moved);
}

EdgeSet whole_edges(const GraphSlice& slice, size_t edge_set, Peers& peers) {
  const EdgeSet& own = slice.graph.edge_sets[edge_set];
  EdgeSet whole;
  whole.source = own.source;
  whole.target = own.target;
  whole.source_index = gather(peers, own.source_index).values;
  whole.target_index = gather(peers, own.target_index).values;
  for (const auto& [name, attribute] : own.attributes)
    whole.attributes[name] = {attribute.width, gather(peers, attribute.values).values};
  return whole;
}

}  // namespace aifs::graph
