// SPDX-License-Identifier: Apache-2.0
// A graph divided over ranks in its own order: all have the nodes, each has a range of every list
// of edges. The slices of all ranks, one after another, are the graph, bit for bit. What depends on
// all edges is made of them here; graph/graph_part.h turns slices into the edges that each rank
// works on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/peers.h"
#include "graph/base/content_hash.h"
#include "graph/base/edge_list.h"
#include "graph/base/graph.h"
#include "graph/graph_report.h"
#include "graph/partition.h"

namespace aifs::graph {

// Edges begin, ..., end - 1 of `total`.
struct EdgeRange {
  int64_t begin = 0, end = 0, total = 0;

  int64_t size() const { return end - begin; }
};

// The range of one rank of `size`. It begins and ends with a block of parallel_for(), so that sums
// over blocks do not depend on the number of ranks.
EdgeRange edge_range(int64_t total, int64_t rank, int64_t size);

struct GraphSlice {
  Graph graph;                    // node sets whole; of each edge set the edges of its range
  std::vector<EdgeRange> ranges;  // of each edge set
};

// Moves edges that ranks have some of, in rank order, to the ranges of edge_range(). Collective.
EdgeList in_ranges(const EdgeList& part, Peers& peers);

// A slice of a graph that is all here.
GraphSlice slice_of(const Graph& graph, int64_t rank, int64_t size);

// Takes a whole graph piece by piece, in the order of its content.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void nodes(const NodeSet& nodes) = 0;
  // An edge set begins, of so many edges. Of `edges` only the names count.
  virtual void edges(const EdgeSet& edges, int64_t total) = 0;
  // An array of it begins: "source_index", "target_index", then attributes by name. Its pieces
  // follow, each with rows after those before.
  virtual void ends(const std::string& name) = 0;
  virtual void attribute(const std::string& name, int64_t width) = 0;
  virtual void piece(std::span<const int32_t> values) = 0;
  virtual void piece(std::span<const float> values) = 0;
};

// Gives all slices to the sink of the first rank, which has no more than one array of one slice of
// another rank at a time; those of the other ranks are not used. What a sink throws is rethrown
// when all are done, on the first rank. Collective.
void give_pieces(const GraphSlice& slice, Peers& peers, PieceSink& sink);

// Graph::content_hash() of the pieces that it is given.
class HashSink : public PieceSink {
 public:
  void nodes(const NodeSet& nodes) override;
  void edges(const EdgeSet& edges, int64_t total) override;
  void ends(const std::string& name) override;
  void attribute(const std::string& name, int64_t width) override;
  void piece(std::span<const int32_t> values) override { hash_.more(values); }
  void piece(std::span<const float> values) override { hash_.more(values); }
  std::string finish() { return hash_.finish(); }

 private:
  ContentHash hash_;
  int64_t total_ = 0;
};

// A text of the first rank, on every rank. Collective.
std::string text_of_first(const std::string& text, Peers& peers);

// Graph::content_hash() of the whole, which the first rank finds. On every rank. Collective.
std::string content_hash(const GraphSlice& slice, Peers& peers);

// degrees_of() and report_of() of the whole, the latter with lengths. Collective.
GraphStatistics degrees_of(const GraphSlice& slice, Peers& peers);
GraphReport report_of(const GraphSlice& slice, Peers& peers);

// make_partition() of the whole, for as many ranks as there are peers. Collective.
GraphPartition make_partition(const GraphSlice& slice, HiddenOrder order, int64_t layers,
                              Peers& peers);

// The edge set at this place, whole. Collective.
EdgeSet whole_edges(const GraphSlice& slice, size_t edge_set, Peers& peers);

}  // namespace aifs::graph
