// SPDX-License-Identifier: Apache-2.0
// Files as torch.save() writes them, made of pieces of pickles.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "tests/support/zip_writer.h"

namespace aifs::test {

// Pieces of a pickle of protocol 2.
inline std::string pickled(const std::string& text) {
  return ByteWriter().text("X").add(static_cast<uint32_t>(text.size())).text(text).bytes();
}
inline std::string pickled(int32_t number) {
  return ByteWriter().text("J").add(number).bytes();
}
inline std::string pickled_tuple(const std::vector<int32_t>& numbers) {
  std::string text = "(";
  for (const int32_t number : numbers)
    text += pickled(number);
  return text + "t";
}
// `values` are pickles.
inline std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text = "}(";
  for (const auto& [key, value] : values)
    text += pickled(key) + value;
  return text + "u";
}
inline std::string pickled_class(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
// An object of a class with a dictionary as its state.
inline std::string pickled_object(const std::string& module, const std::string& name,
                                  const std::string& state) {
  return pickled_class(module, name) + ")\x81" + state + "b";
}

// Says where a tensor lies in a storage.
struct TensorSample {
  std::string storage = "FloatStorage", key = "0";
  int32_t elements = 6;  // of the storage
  int32_t offset = 0;
  std::vector<int32_t> shape{2, 3}, strides{3, 1};
};

inline std::string pickled_tensor(const TensorSample& sample = {}) {
  return pickled_class("torch._utils", "_rebuild_tensor_v2") + "((" + pickled("storage") +
         pickled_class("torch", sample.storage) + pickled(sample.key) + pickled("cpu") +
         pickled(sample.elements) + "tQ" + pickled(sample.offset) + pickled_tuple(sample.shape) +
         pickled_tuple(sample.strides) + "\x89" + pickled_class("collections", "OrderedDict") +
         ")RtR";
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A file of the value that `pickle` stands for, with these storages, and other members.
inline std::string torch_bytes(const std::string& pickle,
                               const std::map<std::string, std::string>& storages = {},
                               const std::map<std::string, std::string>& others = {}) {
  std::map<std::string, std::string> members{
      {"m/data.pkl", "\x80\x02" + pickle + "."}, {"m/byteorder", "little"}, {"m/version", "3\n"}};
  for (const auto& [key, bytes] : storages)
    members["m/data/" + key] = bytes;
  for (const auto& [name, bytes] : others)
    members["m/" + name] = bytes;
  return zip_bytes(members);
}

// A HeteroData of one node and an edge from it to itself; storages "graph" and "edge" hold them.
inline std::string pickled_graph() {
  const std::string x =
      pickled_tensor({.key = "graph", .elements = 2, .shape = {1, 2}, .strides = {2, 1}});
  const std::string edge = pickled_tensor(
      {.storage = "LongStorage", .key = "edge", .elements = 2, .shape = {2, 1}, .strides = {1, 1}});
  const auto store = [](const std::string& kind, const std::string& mapping) {
    return pickled_object("torch_geometric.data.storage", kind,
                          pickled_dict({{"_mapping", mapping}}));
  };
  const std::string nodes = pickled_dict(
      {{"data", store("NodeStorage", pickled_dict({{"x", x}, {"node_type", pickled("Nodes")}}))}});
  const std::string edges = "}(" + pickled("data") + pickled("to") + pickled("data") + "\x87" +
                            store("EdgeStorage", pickled_dict({{"edge_index", edge}})) + "u";
  return pickled_object("torch_geometric.data.hetero_data", "HeteroData",
                        pickled_dict({{"_node_store_dict", nodes}, {"_edge_store_dict", edges}}));
}
inline std::map<std::string, std::string> graph_storages() {
  return {{"graph", bytes_of<float>({0.5F, 1.5F})}, {"edge", bytes_of<int64_t>({0, 0})}};
}

}  // namespace aifs::test
