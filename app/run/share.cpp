// SPDX-License-Identifier: Apache-2.0
#include "app/run/share.h"

#include <ATen/ATen.h>

namespace aifs::app {

namespace {

// Gives each part of a structure the value it has on rank 0, in the order of the calls.
class Sharer {
 public:
  explicit Sharer(parallel::Communicator& world) : world_(world) {}

  void share(int64_t& number) {
    const at::Tensor tensor = at::full({1}, number, at::kLong);
    world_.broadcast(tensor, 0);
    number = tensor.item<int64_t>();
  }
  // Plain numbers, or characters.
  template <class Sequence>
  void share_all(Sequence& values) {
    auto size = static_cast<int64_t>(values.size());
    share(size);
    values.resize(static_cast<size_t>(size));
    if (size == 0) return;
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(values[0]));
    world_.broadcast(at::from_blob(values.data(), {bytes}, at::kByte), 0);
  }
  void share(std::map<std::string, graph::Attribute>& attributes) {
    std::vector<std::string> names;
    for (const auto& [name, attribute] : attributes)
      names.push_back(name);
    auto count = static_cast<int64_t>(names.size());
    share(count);
    names.resize(static_cast<size_t>(count));
    for (std::string& name : names) {
      share_all(name);
      graph::Attribute& attribute = attributes[name];
      share(attribute.width);
      share_all(attribute.values);
    }
  }
  template <class Set>
  void share_count(std::vector<Set>& sets) {
    auto count = static_cast<int64_t>(sets.size());
    share(count);
    sets.resize(static_cast<size_t>(count));
  }

 private:
  parallel::Communicator& world_;
};

}  // namespace

void share(std::string& bytes, parallel::Communicator& world) {
  if (world.size() > 1) Sharer(world).share_all(bytes);
}

void share(graph::Graph& graph, parallel::Communicator& world) {
  if (world.size() == 1) return;
  Sharer sharer(world);
  sharer.share_count(graph.node_sets);
  for (graph::NodeSet& nodes : graph.node_sets) {
    sharer.share_all(nodes.name);
    sharer.share_all(nodes.lat_rad);
    sharer.share_all(nodes.lon_rad);
    sharer.share(nodes.attributes);
  }
  sharer.share_count(graph.edge_sets);
  for (graph::EdgeSet& edges : graph.edge_sets) {
    sharer.share_all(edges.source);
    sharer.share_all(edges.target);
    sharer.share_all(edges.source_index);
    sharer.share_all(edges.target_index);
    sharer.share(edges.attributes);
  }
}

}  // namespace aifs::app
