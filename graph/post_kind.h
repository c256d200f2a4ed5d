// SPDX-License-Identifier: Apache-2.0
// Changes to a finished graph (post_process.h) as options: what a kind of them is, and all kinds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tagged.h"
#include "graph/post_process.h"

namespace aifs::graph {

struct PostPlace {
  Graph& graph;
  std::string path;  // JSON path of the change
  // Computes the attributes of an edge set again, so that the statistics of norms follow.
  std::function<void(EdgeSet&)> recompute;
};

class PostKind {
 public:
  virtual ~PostKind() = default;

  // Declares the options that this kind reads.
  virtual void bind(config::Binder&) {}
  virtual void validate(const std::string& /*path*/) const {}
  // Throws ConfigError for sets and masks that the graph has not, and if nothing would be left.
  virtual void apply(const PostPlace& place) const = 0;
  // The node sets that nodes are removed from.
  virtual std::vector<std::string> reduced_sets() const { return {}; }

  // All kinds, in the order in which they are documented; the first is the default.
  static const std::vector<config::Kind<PostKind>>& kinds();
};

// Nodes at which no edge starts or ends go.
struct RemoveUnconnectedKind : PostKind {
  std::vector<std::string> nodes{"hidden"};
  std::string ignore, save_as;

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  void apply(const PostPlace& place) const override;
  std::vector<std::string> reduced_sets() const override { return nodes; }
};

// Nodes outside an area go, with their edges.
struct SubAreaKind : PostKind {
  std::vector<std::string> nodes{"hidden"};
  Area area{90.0, 0.0, -90.0, 360.0};

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  void apply(const PostPlace& place) const override;
  std::vector<std::string> reduced_sets() const override { return nodes; }
};

// Edges longer than a limit go; with a mask only those that end (start) where it is not 0.
struct RestrictLengthKind : PostKind {
  std::string source = "data", target = "hidden", source_mask, target_mask;
  double max_length_km = 1000.0;

  void bind(config::Binder& b) override;
  void apply(const PostPlace& place) const override;
};

// Edges from a node to itself go.
struct RemoveSelfEdgesKind : PostKind {
  std::string nodes = "hidden";

  void bind(config::Binder& b) override;
  void apply(const PostPlace& place) const override;
};

// All edge sets are sorted by the node at one end.
struct SortEdgesKind : PostKind {
  EdgeEnd by = EdgeEnd::kTarget;
  bool descending = true;

  void bind(config::Binder& b) override;
  void apply(const PostPlace& place) const override;
};

constexpr auto enum_table(EdgeEnd) {
  using enum EdgeEnd;
  return std::to_array<EnumName<EdgeEnd>>({{kSource, "source"}, {kTarget, "target"}});
}

}  // namespace aifs::graph
