// SPDX-License-Identifier: Apache-2.0
#include "graph/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "core/run_on_threads.h"
#include "graph/base/geometry.h"
#include "graph/base/parallel_for.h"

namespace aifs::graph {

namespace {

constexpr int64_t kMostRanges = 40;

AttributeStatistics attribute_statistics(const std::string& name, const Attribute& attribute) {
  AttributeStatistics statistics{.name = name, .width = attribute.width};
  statistics.num_rows = static_cast<int64_t>(attribute.values.size()) / attribute.width;
  std::vector<float> finite;
  finite.reserve(attribute.values.size());
  std::copy_if(attribute.values.begin(), attribute.values.end(), std::back_inserter(finite),
               [](float value) { return std::isfinite(value); });
  statistics.num_nonfinite = static_cast<int64_t>(attribute.values.size() - finite.size());
  statistics.spread = spread_of(finite);
  return statistics;
}

std::vector<AttributeStatistics> attribute_statistics(
    const std::map<std::string, Attribute>& attributes) {
  std::vector<AttributeStatistics> all;
  for (const auto& [name, attribute] : attributes)
    all.push_back(attribute_statistics(name, attribute));
  return all;
}

Histogram length_histogram(const std::vector<float>& lengths, const Spread& spread) {
  Histogram histogram;
  if (lengths.empty()) return histogram;
  histogram.first = spread.min;
  histogram.width = (spread.max - spread.min) / static_cast<double>(kMostRanges);
  if (!(histogram.width > 0)) histogram.width = 1.0;  // all are of one length
  histogram.counts.assign(spread.max > spread.min ? kMostRanges : 1, 0);
  const auto last = static_cast<int64_t>(histogram.counts.size()) - 1;
  for (const float length : lengths) {
    const auto range = static_cast<int64_t>((length - histogram.first) / histogram.width);
    ++histogram.counts[static_cast<size_t>(std::clamp<int64_t>(range, 0, last))];
  }
  return histogram;
}

}  // namespace

bool is_data(const NodeSet& nodes) {
  return nodes.name == "data" || nodes.attributes.count("area_weight") > 0;
}

Spread spread_of(const std::vector<float>& values) {
  if (values.empty()) return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double sum = 0.0;
  for (const float value : values)
    sum += value;
  return {*least, sum / static_cast<double>(values.size()), *most};
}

std::vector<int32_t> degrees_of_nodes(const std::vector<int32_t>& index, int64_t num_nodes) {
  std::vector<int32_t> degrees(static_cast<size_t>(num_nodes), 0);
  for (const int32_t node : index)
    ++degrees[static_cast<size_t>(node)];
  return degrees;
}

DegreeStatistics degree_statistics(const std::vector<int32_t>& index, int64_t num_nodes) {
  return degree_statistics(degrees_of_nodes(index, num_nodes));
}

DegreeStatistics degree_statistics(const std::vector<int32_t>& degrees) {
  DegreeStatistics statistics;
  if (degrees.empty()) return statistics;
  const auto [least, most] = std::minmax_element(degrees.begin(), degrees.end());
  const int64_t first = *least, width = (*most - *least) / kMostRanges + 1;
  const auto num_edges = std::accumulate(degrees.begin(), degrees.end(), int64_t{0});
  const double mean = static_cast<double>(num_edges) / static_cast<double>(degrees.size());
  statistics.spread = {static_cast<double>(*least), mean, static_cast<double>(*most)};
  statistics.histogram = {static_cast<double>(first), static_cast<double>(width), {}};
  statistics.histogram.counts.assign(static_cast<size_t>((*most - first) / width + 1), 0);
  for (size_t node = 0; node < degrees.size(); ++node) {
    ++statistics.histogram.counts[static_cast<size_t>((degrees[node] - first) / width)];
    if (degrees[node] == 0) statistics.without.push_back(static_cast<int32_t>(node));
  }
  return statistics;
}

namespace {

// Calls visit(block, edge, length) for all edges, those of a block in their order.
template <class Visit>
void visit_lengths_km(const EdgeSet& edges, const NodeSet& source, const NodeSet& target,
                      int64_t threads, const Visit& visit) {
  const auto from = unit_vectors<float>(source.lat_rad, source.lon_rad, threads);
  const auto to = unit_vectors<float>(target.lat_rad, target.lon_rad, threads);
  parallel_for(edges.num_edges(), threads, [&](int64_t block, int64_t begin, int64_t end) {
    for (auto e = static_cast<size_t>(begin); e < static_cast<size_t>(end); ++e) {
      const double chord =
          std::sqrt(squared_distance(from[static_cast<size_t>(edges.source_index[e])],
                                     to[static_cast<size_t>(edges.target_index[e])]));
      visit(static_cast<size_t>(block), e, static_cast<float>(arc_of_chord(chord)));
    }
  });
}

}  // namespace

std::vector<float> edge_lengths_km(const EdgeSet& edges, const NodeSet& source,
                                   const NodeSet& target, int64_t threads) {
  std::vector<float> lengths(edges.source_index.size());
  visit_lengths_km(edges, source, target, threads,
                   [&](size_t, size_t edge, float length) { lengths[edge] = length; });
  return lengths;
}

std::vector<LengthBlock> edge_length_blocks_km(const EdgeSet& edges, const NodeSet& source,
                                               const NodeSet& target, int64_t threads) {
  constexpr LengthBlock kNone{std::numeric_limits<double>::infinity(), 0.0, 0.0};
  std::vector<LengthBlock> blocks(static_cast<size_t>(num_blocks(edges.num_edges())), kNone);
  visit_lengths_km(edges, source, target, threads, [&](size_t block, size_t, float length) {
    const auto km = static_cast<double>(length);
    LengthBlock& own = blocks[block];
    own.min = std::min(own.min, km);
    own.max = std::max(own.max, km);
    own.sum += km;
  });
  return blocks;
}

Spread spread_of_blocks(const std::vector<LengthBlock>& blocks, int64_t num_edges) {
  if (blocks.empty()) return {};
  LengthBlock all{std::numeric_limits<double>::infinity(), 0.0, 0.0};
  for (const LengthBlock& block : blocks)
    all = {std::min(all.min, block.min), std::max(all.max, block.max), all.sum + block.sum};
  return {all.min, all.sum / static_cast<double>(num_edges), all.max};
}

Spread edge_length_spread_km(const EdgeSet& edges, const NodeSet& source, const NodeSet& target,
                             int64_t threads) {
  return spread_of_blocks(edge_length_blocks_km(edges, source, target, threads), edges.num_edges());
}

GraphStatistics degrees_of(const Graph& graph, int64_t threads) {
  GraphStatistics statistics;
  for (const NodeSet& nodes : graph.node_sets)
    statistics.node_sets.push_back({nodes.name, nodes.num_nodes(), is_data(nodes), {}});
  for (const EdgeSet& edges : graph.edge_sets) {
    EdgeSetStatistics& set = statistics.edge_sets.emplace_back();
    set.source = edges.source;
    set.target = edges.target;
    set.num_edges = edges.num_edges();
  }
  const auto num_sides = static_cast<int64_t>(2 * graph.edge_sets.size());
  run_on_threads(num_sides, effective_threads(threads), [&](int64_t side) {
    const auto i = static_cast<size_t>(side / 2);
    const EdgeSet& edges = graph.edge_sets[i];
    EdgeSetStatistics& set = statistics.edge_sets[i];
    if (side % 2 == 0)
      set.sources = degree_statistics(edges.source_index, graph.nodes(edges.source).num_nodes());
    else
      set.targets = degree_statistics(edges.target_index, graph.nodes(edges.target).num_nodes());
  });
  return statistics;
}

GraphStatistics statistics_of(const Graph& graph, int64_t threads) {
  GraphStatistics statistics = degrees_of(graph, threads);
  for (size_t i = 0; i < graph.node_sets.size(); ++i)
    statistics.node_sets[i].attributes = attribute_statistics(graph.node_sets[i].attributes);
  for (size_t i = 0; i < graph.edge_sets.size(); ++i) {
    const EdgeSet& edges = graph.edge_sets[i];
    EdgeSetStatistics& set = statistics.edge_sets[i];
    const std::vector<float> lengths =
        edge_lengths_km(edges, graph.nodes(edges.source), graph.nodes(edges.target), threads);
    set.length_km = spread_of(lengths);
    set.lengths_km = length_histogram(lengths, set.length_km);
    set.attributes = attribute_statistics(edges.attributes);
  }
  return statistics;
}

}  // namespace aifs::graph
