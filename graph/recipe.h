// SPDX-License-Identifier: Apache-2.0
// A graph as it is built: node sets and edge sets in order, each with the JSON path that asks for
// it. The short form of the options becomes one, too.
#pragma once

#include <string>
#include <vector>

#include "graph/options.h"

namespace aifs::graph {

struct RecipeNodes {
  struct WeightPath {
    std::string name, path;
    NodeAttributeOptions options;
  };
  std::string name, path;
  config::Tagged<NodeKind> kind = {};
  std::vector<WeightPath> attributes = {};
  bool is_data = false;  // cells of a dataset
};

struct RecipeEdges {
  struct Builder {
    std::string path;
    config::Tagged<EdgeKind> kind;
  };
  struct AttributePath {
    std::string name, path, norm_path;
    config::Tagged<EdgeAttributeKind> kind;
  };
  std::string source, target;
  std::vector<Builder> builders;
  std::vector<AttributePath> attributes;
};

struct Recipe {
  std::vector<RecipeNodes> nodes;
  std::vector<RecipeEdges> edges;
};

// The graph of `options` for datasets of these names. Throws ConfigError for edges between sets
// that there are not, and names of datasets that node sets cannot have.
Recipe recipe_of(const GraphOptions& options, const std::vector<std::string>& datasets);

}  // namespace aifs::graph
