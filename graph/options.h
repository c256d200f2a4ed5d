// SPDX-License-Identifier: Apache-2.0
// The section "graph" of a configuration. The short form (hidden, encoder, processor, decoder) is
// one hidden mesh between the cells of the data; its defaults are the multi-scale graph that Anemoi
// ships for GNNs: data nodes join the hidden mesh within 0.6 of its spacing, hidden nodes talk on
// all levels of refinement, and every data node listens to its three nearest hidden nodes. The long
// form lists node sets by name and the edges between them. docs/graphs.md has all kinds.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/tagged.h"
#include "graph/base/geometry.h"
#include "graph/edges/edge_attribute_kind.h"
#include "graph/edges/edge_kind.h"
#include "graph/nodes/node_kind.h"
#include "graph/post_kind.h"
#include "graph/weights/node_attribute_kind.h"
#include "graph/weights/normalisation.h"

namespace aifs::graph {

struct HiddenOptions {
  config::Tagged<NodeKind> kind;

  void bind(config::Binder& b);
  void validate(const std::string& path) const { kind->validate(path); }
};

// One builder of edges.
struct EdgeOptions {
  config::Tagged<EdgeKind> kind;

  void bind(config::Binder& b);
  void validate(const std::string& path) const { kind->validate(path); }
};

struct NodeAttributeOptions {
  config::Tagged<NodeAttributeKind> kind;

  void bind(config::Binder& b);
  void validate(const std::string& path) const { kind->validate(path); }
};

struct EdgeAttributeOptions {
  config::Tagged<EdgeAttributeKind> kind;

  void bind(config::Binder& b);
  void validate(const std::string& path) const { kind->validate(path); }
};

struct PostOptions {
  config::Tagged<PostKind> kind;

  void bind(config::Binder& b);
  void validate(const std::string& path) const { kind->validate(path); }
};

template <class Options>
using Named = std::vector<std::pair<std::string, Options>>;

struct NodeSetOptions {
  config::Tagged<NodeKind> kind;
  Named<NodeAttributeOptions> attributes;

  void bind(config::Binder& b);
  void validate(const std::string& path) const { kind->validate(path); }
};

struct EdgeSetOptions {
  std::string source, target;  // names of node sets
  std::vector<EdgeOptions> kinds;
  Named<EdgeAttributeOptions> attributes;  // none: edge_length and edge_dirs

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct GraphOptions {
  std::string grid = "dataset";
  DegreeArithmetic coordinates = DegreeArithmetic::kFloat64;
  HiddenOptions hidden;
  EdgeOptions encoder{config::Tagged<EdgeKind>("cutoff")};
  EdgeOptions processor{config::Tagged<EdgeKind>("multi_scale")};
  EdgeOptions decoder{config::Tagged<EdgeKind>("knn")};
  Named<NodeSetOptions> nodes;
  std::vector<EdgeSetOptions> edges;
  std::vector<PostOptions> post_process;
  Norm edge_length_norm = Norm::kUnitStd;
  Norm edge_dirs_norm = Norm::kUnitStd;
  NodeAttributeOptions area_weight;
  std::optional<int64_t> threads;  // empty: all cores it may use
  std::string file, cache;
  bool given = false;  // the graph in `file` is taken as it is

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
  // True if node sets and edges are listed.
  bool is_long() const { return !nodes.empty() || !edges.empty(); }
  // True if a set of this name, other than cells of data, is made here.
  bool makes_nodes(const std::string& name) const;
};

// SHA-256 of everything that changes the graph (not `threads`, `file`, `cache`, `given`). Of files
// of coordinates their content counts, not where they are. Throws DataError if one cannot be read.
std::string options_hash(const GraphOptions& options);

}  // namespace aifs::graph
