// SPDX-License-Identifier: Apache-2.0
#include "app/graph_tools/globe_page.h"

#include <algorithm>
#include <cstdio>

#include "app/graph_tools/graph_summary.h"
#include "app/graph_tools/page_files.h"
#include "core/check.h"
#include "report/page_files.h"
#include "report/page_text.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;

// The whole number that is written with separators: "1,600".
std::string with_separators(size_t number) {
  std::string digits = std::to_string(number);
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3)
    digits.insert(static_cast<size_t>(place), ",");
  return digits;
}

Json nodes_json(const graph::NodeSet& nodes) {
  return {{"name", nodes.name},
          {"role", graph::is_data(nodes) ? "data" : "mesh"},
          {"lat", report::base64_floats(nodes.lat_rad)},
          {"lon", report::base64_floats(nodes.lon_rad)}};
}

Json edges_json(const graph::EdgeSet& edges, const graph::EdgeSetStatistics& statistics,
                int64_t every) {
  std::vector<int32_t> sources, targets;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    if (edges.target_index[e] % every != 0) continue;
    sources.push_back(edges.source_index[e]);
    targets.push_back(edges.target_index[e]);
  }
  return {
      {"source", edges.source},
      {"target", edges.target},
      {"count", edges.num_edges()},
      {"every", every},
      {"kept", sources.size()},
      {"source_index", encode_indices(sources)},
      {"target_index", encode_indices(targets)},
      {"in_degree", distribution_json(statistics.targets.spread, statistics.targets.histogram)},
      {"out_degree", distribution_json(statistics.sources.spread, statistics.sources.histogram)},
      {"length_km", distribution_json(statistics.length_km, statistics.lengths_km)}};
}

Json orphans_json(const graph::UnconnectedNodes& nodes) {
  return {
      {"set", nodes.set},
      {"is_data", nodes.is_data},
      {"count", nodes.nodes.size()},
      {"nodes", encode_indices(nodes.nodes)},
      {"text", concat(with_separators(nodes.nodes.size()), " ", nodes.set, " nodes have no edge ",
                      nodes.are_sources ? "to " : "from ", nodes.other)}};
}

}  // namespace

std::string encode_indices(std::span<const int32_t> indices) {
  std::string bytes;
  int64_t last = 0;
  for (const int32_t index : indices) {
    const int64_t d = index - last;
    last = index;
    auto code = static_cast<uint64_t>(d >= 0 ? 2 * d : -2 * d - 1);
    for (; code > 127; code >>= 7)
      bytes += static_cast<char>((code & 127U) | 128U);
    bytes += static_cast<char>(code);
  }
  return report::base64(bytes);
}

std::vector<int64_t> thinning(const std::vector<int64_t>& num_edges, int64_t max_edges) {
  std::vector<int64_t> every(num_edges.size(), 1);
  if (max_edges <= 0) return every;
  std::vector<size_t> order(num_edges.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t i, size_t j) { return num_edges[i] < num_edges[j]; });
  int64_t left = max_edges;
  for (size_t k = 0; k < order.size(); ++k) {
    const int64_t share = std::max<int64_t>(1, left / static_cast<int64_t>(order.size() - k));
    const int64_t count = num_edges[order[k]];
    every[order[k]] = std::max<int64_t>(1, (count + share - 1) / share);
    left -= std::min(left, count / every[order[k]]);
  }
  return every;
}

std::string globe_page(const GlobeInput& input) {
  Json json{{"title", input.title},   {"origin", input.origin},   {"nodes", Json::array()},
            {"edges", Json::array()}, {"orphans", Json::array()}, {"findings", Json::array()}};
  for (const graph::NodeSet& nodes : input.graph.node_sets)
    json["nodes"].push_back(nodes_json(nodes));
  std::vector<int64_t> num_edges;
  for (const graph::EdgeSet& edges : input.graph.edge_sets)
    num_edges.push_back(edges.num_edges());
  const std::vector<int64_t> every = thinning(num_edges, input.max_edges);
  for (size_t i = 0; i < every.size(); ++i)
    json["edges"].push_back(
        edges_json(input.graph.edge_sets[i], input.statistics.edge_sets[i], every[i]));
  for (const graph::UnconnectedNodes& nodes : input.unconnected) {
    json["orphans"].push_back(orphans_json(nodes));
    json["findings"].push_back(concat(nodes.text(), ": ", nodes.reason));
  }
  const std::string graph =
      report::harmless(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return report::filled(kGlobeHtml, {{"@STYLE@", kGlobeCss},
                                     {"@GRAPH@", graph},
                                     {"@SPHERE_SCRIPT@", report::kSphereScript},
                                     {"@GRAPH_SCRIPT@", kGraphScript},
                                     {"@GLOBE_SCRIPT@", kGlobeScript},
                                     {"@PANEL_SCRIPT@", kPanelScript}});
}

}  // namespace aifs::app
