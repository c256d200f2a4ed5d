// SPDX-License-Identifier: Apache-2.0
#include "app/run/graph_tensors.h"

#include <deque>
#include <limits>

#include "core/check.h"
#include "core/safetensors.h"

namespace aifs::app {

namespace {

constexpr const char* kCoordinates = "latlon_rad";
constexpr const char* kIndex = "edge_index";

// The tensors of shape (rows, width) under `prefix`, but for `other`.
std::map<std::string, graph::Attribute> read_attributes(const NamedTensors& file,
                                                        const std::string& prefix,
                                                        const std::string& other, int64_t rows) {
  std::map<std::string, graph::Attribute> attributes;
  for (const auto& [name, entry] : file.entries()) {
    if (!name.starts_with(prefix) || name == prefix + other || entry.shape.size() != 2) continue;
    if (entry.shape[0] != rows) {
      throw DataError(concat("'", name, "' in '", file.path().string(), "' has ", entry.shape[0],
                             " rows, not ", rows));
    }
    const std::vector<double> values = file.doubles(name);
    attributes[name.substr(prefix.size())] = {entry.shape[1], {values.begin(), values.end()}};
  }
  return attributes;
}

// Throws DataError unless a tensor is (rows, columns); -1 stands for any number of them.
void check_shape(const NamedTensors& file, const std::string& name, int64_t rows, int64_t columns) {
  const std::vector<int64_t>& shape = file.at(name).shape;
  const auto is = [](int64_t size, int64_t wanted) { return wanted < 0 || size == wanted; };
  if (shape.size() == 2 && is(shape[0], rows) && is(shape[1], columns)) return;
  throw DataError(concat("'", name, "' in '", file.path().string(), "' is not of shape ",
                         rows < 0 ? "(N, 2)" : "(2, M)"));
}

// Throws DataError for positions of nodes that a graph cannot have.
int32_t position_of(int64_t index, const NamedTensors& file, const std::string& name) {
  if (index >= 0 && index <= std::numeric_limits<int32_t>::max())
    return static_cast<int32_t>(index);
  throw DataError(concat("'", name, "' in '", file.path().string(), "' names node ", index));
}

graph::NodeSet read_nodes(const NamedTensors& file, const std::string& prefix,
                          const std::string& name) {
  check_shape(file, prefix + kCoordinates, -1, 2);
  const std::vector<double> latlon = file.doubles(prefix + kCoordinates);
  graph::NodeSet nodes;
  nodes.name = name;
  for (size_t i = 0; i + 1 < latlon.size(); i += 2) {
    nodes.lat_rad.push_back(static_cast<float>(latlon[i]));
    nodes.lon_rad.push_back(static_cast<float>(latlon[i + 1]));
  }
  nodes.attributes = read_attributes(file, prefix, kCoordinates, nodes.num_nodes());
  return nodes;
}

graph::EdgeSet read_edges(const NamedTensors& file, const std::string& prefix,
                          const std::string& source, const std::string& target) {
  check_shape(file, prefix + kIndex, 2, -1);
  const std::vector<int64_t> index = file.integers(prefix + kIndex);
  const size_t count = index.size() / 2;
  graph::EdgeSet edges;
  edges.source = source;
  edges.target = target;
  for (size_t e = 0; e < count; ++e) {
    edges.source_index.push_back(position_of(index[e], file, prefix + kIndex));
    edges.target_index.push_back(position_of(index[count + e], file, prefix + kIndex));
  }
  edges.attributes = read_attributes(file, prefix, kIndex, edges.num_edges());
  return edges;
}

// Returns what stands between `before` and `after` in names of tensors, in the file's order.
std::vector<std::string> names_between(const NamedTensors& file, const std::string& before,
                                       const std::string& after) {
  std::vector<std::string> names;
  for (const std::string& tensor : file.names()) {
    if (tensor.starts_with(before) && tensor.ends_with(after)) {
      names.push_back(tensor.substr(before.size(), tensor.size() - before.size() - after.size()));
    }
  }
  return names;
}

// Arrays made for a file, kept until it is written.
class TensorItems {
 public:
  template <class T>
  void add(const std::string& name, DType dtype, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    items.push_back({name, dtype, std::move(shape), values.data()});
  }
  void add_attributes(const std::string& prefix,
                      const std::map<std::string, graph::Attribute>& attributes, int64_t rows) {
    for (const auto& [name, attribute] : attributes)
      add(prefix + name, DType::kF32, {rows, attribute.width}, attribute.values);
  }

  std::vector<SafetensorsItem> items;
  std::deque<std::vector<float>> floats;
  std::deque<std::vector<int32_t>> integers;
};

}  // namespace

graph::Graph read_graph_tensors(const NamedTensors& file, const std::string& prefix) {
  graph::Graph graph;
  for (const std::string& name : names_between(file, prefix + "nodes/", concat("/", kCoordinates)))
    graph.node_sets.push_back(read_nodes(file, concat(prefix, "nodes/", name, "/"), name));
  for (const std::string& ends : names_between(file, prefix + "edges/", concat("/", kIndex))) {
    const size_t middle = ends.find("_to_");
    if (middle == std::string::npos) throw DataError(concat("edges '", ends, "' in a graph file"));
    const std::string source = ends.substr(0, middle), target = ends.substr(middle + 4);
    graph.edge_sets.push_back(
        read_edges(file, concat(prefix, "edges/", ends, "/"), source, target));
  }
  graph.check();
  return graph;
}

void write_graph_tensors(const fs::path& path, const graph::Graph& graph) {
  TensorItems tensors;
  for (const graph::NodeSet& nodes : graph.node_sets) {
    std::vector<float>& latlon = tensors.floats.emplace_back();
    for (size_t i = 0; i < nodes.lat_rad.size(); ++i)
      latlon.insert(latlon.end(), {nodes.lat_rad[i], nodes.lon_rad[i]});
    const std::string prefix = concat("nodes/", nodes.name, "/");
    tensors.add(prefix + kCoordinates, DType::kF32, {nodes.num_nodes(), 2}, latlon);
    tensors.add_attributes(prefix, nodes.attributes, nodes.num_nodes());
  }
  for (const graph::EdgeSet& edges : graph.edge_sets) {
    std::vector<int32_t>& index = tensors.integers.emplace_back(edges.source_index);
    index.insert(index.end(), edges.target_index.begin(), edges.target_index.end());
    const std::string prefix = concat("edges/", edges.source, "_to_", edges.target, "/");
    tensors.add(prefix + kIndex, DType::kI32, {2, edges.num_edges()}, index);
    tensors.add_attributes(prefix, edges.attributes, edges.num_edges());
  }
  write_safetensors(path, tensors.items);
}

}  // namespace aifs::app
