// SPDX-License-Identifier: Apache-2.0
#include "app/graph_tools/globe_page.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "app/graph_tools/graph_summary.h"
#include "app/graph_tools/page_files.h"
#include "core/check.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;

std::string floats(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  return base64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

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
          {"lat", floats(nodes.lat_rad)},
          {"lon", floats(nodes.lon_rad)}};
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

// Nothing in the text may end the element that it stands in.
std::string harmless(std::string text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text)
    c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

// Puts texts in the places of the page that are named @LIKE_THIS@, each once.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string, std::string_view>>& texts) {
  std::string out;
  for (const auto& [name, text] : texts) {
    const size_t place = page.find(name);
    AIFS_CHECK(place != std::string_view::npos, "the page has no place for ", name);
    out += page.substr(0, place);
    out += text;
    page.remove_prefix(place + name.size());
  }
  return out.append(page);
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr const char* kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k)
      text += k <= count ? kLetters[(group >> (18 - 6 * k)) & 63U] : '=';
  }
  return text;
}

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
  return base64(bytes);
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
      harmless(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return filled(kGlobeHtml, {{"@STYLE@", kGlobeCss},
                             {"@GRAPH@", graph},
                             {"@GRAPH_SCRIPT@", kGraphScript},
                             {"@GLOBE_SCRIPT@", kGlobeScript},
                             {"@PANEL_SCRIPT@", kPanelScript}});
}

}  // namespace aifs::app
