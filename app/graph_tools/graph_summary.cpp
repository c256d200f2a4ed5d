// SPDX-License-Identifier: Apache-2.0
#include "app/graph_tools/graph_summary.h"

#include <algorithm>
#include <cstdio>

#include "core/check.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNamed = 8;  // nodes without edges that are listed

std::string spread_text(const graph::Spread& spread) {
  char text[96];
  std::snprintf(text, sizeof text, "%11.5g %11.5g %11.5g", spread.min, spread.mean, spread.max);
  return text;
}

std::string line(const std::string& label, const std::string& rest) {
  char text[64];
  std::snprintf(text, sizeof text, "%-34s ", label.c_str());
  return concat(text, rest, "\n");
}

std::string counts_text(const graph::GraphStatistics& statistics) {
  std::string text;
  const auto counted = [](int64_t count) {
    char number[24];
    std::snprintf(number, sizeof number, "%12lld", static_cast<long long>(count));
    return std::string(number);
  };
  for (const auto& set : statistics.node_sets)
    text += line(concat("nodes  ", set.name), counted(set.num_nodes));
  for (const auto& set : statistics.edge_sets)
    text += line(concat("edges  ", set.source, "->", set.target), counted(set.num_edges));
  return text;
}

std::string attributes_text(const std::string& owner,
                            const std::vector<graph::AttributeStatistics>& attributes) {
  std::string text;
  for (const auto& attribute : attributes) {
    text += line(
        concat(owner, " ", attribute.name),
        concat(spread_text(attribute.spread), "  (", attribute.num_rows, ", ", attribute.width, ")",
               attribute.num_nonfinite > 0 ? concat("  ", attribute.num_nonfinite, " not finite")
                                           : ""));
  }
  return text;
}

std::string list_text(const std::vector<int32_t>& nodes) {
  std::string text;
  for (size_t i = 0; i < std::min(kNamed, nodes.size()); ++i)
    text += concat(i == 0 ? "" : ", ", nodes[i]);
  return text + (nodes.size() > kNamed ? ", ..." : "");
}

Json spread_json(const graph::Spread& spread) {
  return {{"min", spread.min}, {"mean", spread.mean}, {"max", spread.max}};
}

Json attributes_json(const std::vector<graph::AttributeStatistics>& attributes) {
  Json all = Json::object();
  for (const auto& attribute : attributes) {
    Json json = spread_json(attribute.spread);
    json["shape"] = {attribute.num_rows, attribute.width};
    json["not_finite"] = attribute.num_nonfinite;
    all[attribute.name] = json;
  }
  return all;
}

Json degree_json(const graph::DegreeStatistics& degrees) {
  Json json = distribution_json(degrees.spread, degrees.histogram);
  json["without"] = degrees.without.size();
  return json;
}

}  // namespace

Json distribution_json(const graph::Spread& spread, const graph::Histogram& histogram) {
  Json json = spread_json(spread);
  json["histogram"] = {
      {"first", histogram.first}, {"width", histogram.width}, {"counts", histogram.counts}};
  return json;
}

std::string summary_text(const graph::GraphStatistics& statistics,
                         const std::vector<graph::UnconnectedNodes>& unconnected) {
  std::string text = counts_text(statistics);
  text += "\n" + line("", "      least        mean        most");
  for (const auto& set : statistics.edge_sets) {
    const std::string name = concat(set.source, "->", set.target);
    text += line(concat(name, " edges of a target"), spread_text(set.targets.spread));
    text += line(concat(name, " edges of a source"), spread_text(set.sources.spread));
    text += line(concat(name, " length in km"), spread_text(set.length_km));
  }
  for (const auto& set : statistics.node_sets)
    text += attributes_text(set.name, set.attributes);
  for (const auto& set : statistics.edge_sets)
    text += attributes_text(concat(set.source, "->", set.target), set.attributes);
  text += unconnected.empty() ? "\nno node of data is unseen or without forecast, no mesh node "
                                "hears no data\n"
                              : "\n";
  for (const auto& nodes : unconnected)
    text += concat(nodes.text(), "\n  nodes ", list_text(nodes.nodes), "\n  ", nodes.reason, "\n");
  return text;
}

Json summary_json(const graph::GraphStatistics& statistics,
                  const std::vector<graph::UnconnectedNodes>& unconnected) {
  Json json{{"nodes", Json::array()}, {"edges", Json::array()}, {"unconnected", Json::array()}};
  for (const auto& set : statistics.node_sets) {
    json["nodes"].push_back({{"name", set.name},
                             {"count", set.num_nodes},
                             {"is_data", set.is_data},
                             {"attributes", attributes_json(set.attributes)}});
  }
  for (const auto& set : statistics.edge_sets) {
    json["edges"].push_back({{"source", set.source},
                             {"target", set.target},
                             {"count", set.num_edges},
                             {"of_target", degree_json(set.targets)},
                             {"of_source", degree_json(set.sources)},
                             {"length_km", distribution_json(set.length_km, set.lengths_km)},
                             {"attributes", attributes_json(set.attributes)}});
  }
  for (const auto& nodes : unconnected) {
    json["unconnected"].push_back({{"set", nodes.set},
                                   {nodes.are_sources ? "no_edge_to" : "no_edge_from", nodes.other},
                                   {"is_data", nodes.is_data},
                                   {"count", nodes.nodes.size()},
                                   {"reason", nodes.reason},
                                   {"nodes", nodes.nodes}});
  }
  return json;
}

}  // namespace aifs::app
