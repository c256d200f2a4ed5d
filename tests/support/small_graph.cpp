// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_graph.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/rng.h"
#include "model/nodes/graph_tensors.h"

namespace aifs::test {

namespace {

int32_t random_below(const CounterRng& rng, uint64_t counter, int64_t bound) {
  return static_cast<int32_t>(rng.bits(counter) % static_cast<uint64_t>(bound));
}

graph::Attribute random_attribute(const CounterRng& rng, int64_t rows, int64_t width) {
  graph::Attribute attribute;
  attribute.width = width;
  for (int64_t i = 0; i < rows * width; ++i)
    attribute.values.push_back(static_cast<float>(rng.normal(static_cast<uint64_t>(i))));
  return attribute;
}

graph::NodeSet random_nodes(const std::string& name, int64_t count, uint64_t seed) {
  const CounterRng rng(seed);
  graph::NodeSet nodes;
  nodes.name = name;
  for (int64_t i = 0; i < count; ++i) {
    const auto counter = static_cast<uint64_t>(2 * i);
    nodes.lat_rad.push_back(static_cast<float>(3.1 * (rng.uniform(counter) - 0.5)));
    nodes.lon_rad.push_back(static_cast<float>(6.2 * rng.uniform(counter + 1)));
  }
  return nodes;
}

}  // namespace

graph::EdgeSet random_edges(const std::string& source, int64_t num_sources,
                            const std::string& target, int64_t num_targets, int64_t num_edges,
                            uint64_t seed) {
  const CounterRng rng(seed);
  graph::EdgeSet edges;
  edges.source = source;
  edges.target = target;
  for (int64_t e = 0; e < num_edges; ++e) {
    const auto counter = static_cast<uint64_t>(3 * e);
    const int64_t last_source = std::max<int64_t>(num_sources - 1, 1);
    const int64_t last_target = std::max<int64_t>(num_targets - 1, 1);
    edges.source_index.push_back(random_below(rng, counter, last_source));
    edges.target_index.push_back(
        rng.uniform(counter + 1) < 1.0 / 3 ? 0 : random_below(rng, counter + 2, last_target));
  }
  edges.attributes["edge_length"] = random_attribute(CounterRng(seed + 1000), num_edges, 1);
  edges.attributes["edge_dirs"] = random_attribute(CounterRng(seed + 2000), num_edges, 2);
  return edges;
}

std::shared_ptr<const model::EdgeIndex> random_edge_index(int64_t num_sources, int64_t num_targets,
                                                          int64_t num_edges, uint64_t seed) {
  const graph::EdgeSet edges =
      random_edges("sources", num_sources, "targets", num_targets, num_edges, seed);
  return model::make_edge_tensors(edges, num_sources, num_targets, {}, at::kDouble).index;
}

graph::Graph random_graph(const GraphSizes& sizes, uint64_t seed) {
  graph::Graph graph;
  graph.node_sets = {random_nodes("data", sizes.data, seed),
                     random_nodes("hidden", sizes.hidden, seed + 1)};
  graph.edge_sets = {
      random_edges("data", sizes.data, "hidden", sizes.hidden, sizes.encoder_edges, seed + 2),
      random_edges("hidden", sizes.hidden, "hidden", sizes.hidden, sizes.processor_edges, seed + 3),
      random_edges("hidden", sizes.hidden, "data", sizes.data, sizes.decoder_edges, seed + 4)};
  graph.check();
  return graph;
}

void add_mesh(graph::Graph& graph, const std::string& finer, const std::string& name,
              int64_t num_nodes) {
  const int64_t num_finer = graph.nodes(finer).num_nodes();
  const auto seed = static_cast<uint64_t>(num_finer);
  graph.node_sets.push_back(random_nodes(name, num_nodes, seed));
  for (graph::EdgeSet& edges :
       std::vector{random_edges(name, num_nodes, name, num_nodes, 8 * num_nodes, seed + 1),
                   random_edges(finer, num_finer, name, num_nodes, 6 * num_nodes, seed + 2),
                   random_edges(name, num_nodes, finer, num_finer, 3 * num_finer, seed + 3)})
    graph.edge_sets.push_back(std::move(edges));
  graph.check();
}

}  // namespace aifs::test
