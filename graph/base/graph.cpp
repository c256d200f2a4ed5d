// SPDX-License-Identifier: Apache-2.0
#include "graph/base/graph.h"

#include "core/check.h"
#include "graph/base/content_hash.h"

namespace aifs::graph {

namespace {

template <class T>
void hash_values(ContentHash& hash, const std::vector<T>& values) {
  hash.values(std::span<const T>(values));
}

void hash_attributes(ContentHash& hash, const std::map<std::string, Attribute>& attributes) {
  for (const auto& [name, attribute] : attributes) {
    hash.text(name);
    hash.width(attribute.width);
    hash_values(hash, attribute.values);
  }
}

void check_attributes(const std::map<std::string, Attribute>& attributes, int64_t rows,
                      const std::string& owner) {
  for (const auto& [name, attribute] : attributes) {
    AIFS_CHECK(static_cast<int64_t>(attribute.values.size()) == rows * attribute.width,
               "attribute '", name, "' of ", owner, " has ", attribute.values.size(),
               " values, expected ", rows, " x ", attribute.width);
  }
}

}  // namespace

const NodeSet& Graph::nodes(const std::string& name) const {
  std::string known;
  for (const NodeSet& set : node_sets) {
    if (set.name == name) return set;
    known += concat(known.empty() ? "'" : ", '", set.name, "'");
  }
  throw Error(concat("the graph has no nodes '", name, "'"), concat("it has ", known));
}

const EdgeSet& Graph::edges(const std::string& source, const std::string& target) const {
  std::string known;
  for (const EdgeSet& set : edge_sets) {
    if (set.source == source && set.target == target) return set;
    known += concat(known.empty() ? "" : ", ", set.source, "->", set.target);
  }
  throw Error(concat("the graph has no edges ", source, "->", target), concat("it has ", known));
}

std::string Graph::content_hash() const {
  ContentHash hash;
  for (const NodeSet& set : node_sets) {
    hash.text(set.name);
    hash_values(hash, set.lat_rad);
    hash_values(hash, set.lon_rad);
    hash_attributes(hash, set.attributes);
  }
  for (const EdgeSet& set : edge_sets) {
    hash.text(set.source);
    hash.text(set.target);
    hash_values(hash, set.source_index);
    hash_values(hash, set.target_index);
    hash_attributes(hash, set.attributes);
  }
  return hash.finish();
}

void Graph::check() const {
  for (const NodeSet& set : node_sets) {
    AIFS_CHECK(set.lat_rad.size() == set.lon_rad.size(), "nodes '", set.name, "' have ",
               set.lat_rad.size(), " latitudes and ", set.lon_rad.size(), " longitudes");
    check_attributes(set.attributes, set.num_nodes(), "nodes '" + set.name + "'");
  }
  for (const EdgeSet& set : edge_sets) {
    const std::string owner = concat("edges ", set.source, "->", set.target);
    const int64_t num_source = nodes(set.source).num_nodes();
    const int64_t num_target = nodes(set.target).num_nodes();
    AIFS_CHECK(set.source_index.size() == set.target_index.size(), owner, " are uneven");
    for (size_t e = 0; e < set.source_index.size(); ++e) {
      const int32_t s = set.source_index[e], t = set.target_index[e];
      AIFS_CHECK(s >= 0 && s < num_source && t >= 0 && t < num_target, owner, ": edge ", e,
                 " joins ", s, " and ", t, " of ", num_source, " and ", num_target, " nodes");
    }
    check_attributes(set.attributes, set.num_edges(), owner);
  }
}

namespace {

void check_characters(const std::string& name, const std::string& path, const char* what) {
  constexpr size_t kMostCharacters = 100;  // two names and "_to_" are one of netCDF
  const bool is_plain =
      !name.empty() && name.size() <= kMostCharacters && name[0] != '-' && name[0] != '.' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
          std::string::npos;
  if (is_plain) return;
  throw ConfigError(
      path, concat("'", name, "' cannot be the name of ", what),
      concat("use up to ", kMostCharacters, " letters, digits, _, - and ., the first no - or ."));
}

}  // namespace

void check_set_name(const std::string& name, const std::string& path) {
  check_characters(name, path, "a node set");
  if (name.find("_to_") == std::string::npos) return;
  throw ConfigError(path, concat("'", name, "' cannot be the name of a node set"),
                    "graph files call edges SOURCE_to_TARGET: leave \"_to_\" out");
}

void check_attribute_name(const std::string& name, const std::string& path) {
  check_characters(name, path, "an attribute");
  for (const char* own : {"latitude", "longitude", "source_index", "target_index"}) {
    if (name != own) continue;
    throw ConfigError(path, concat("'", name, "' cannot be the name of an attribute"),
                      "graph files have a variable of this name already: choose another");
  }
}

}  // namespace aifs::graph
