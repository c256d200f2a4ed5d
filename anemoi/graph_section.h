// SPDX-License-Identifier: Apache-2.0
// Parts of a graph as options of section "graph": of a whole recipe, or alone.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "anemoi/source.h"
#include "anemoi/training_config.h"

namespace aifs::anemoi {

// Each gives an object with "kind" and its options; null for a class that there is not here, which
// says so in a remark.
Json node_kind(const Place& builder);
// `levels`: those that multi-scale edges have on the nodes if they name none; empty: all.
Json edge_kind(const Place& builder, const std::vector<int64_t>& levels = {});
Json edge_attribute_kind(const Place& attribute);
Json post_process_kind(const Place& processor);
// The levels of refinement that a list names. Throws ConfigError for what is no whole number from 0
// to 99.
std::vector<int64_t> levels_of(const Place& list);
// The attribute `name`, and before it the masks that it is made of, by names that begin with "_".
// Empty for a class that there is not here.
std::vector<std::pair<std::string, Json>> node_attribute_kinds(const std::string& name,
                                                               const Place& attribute);

enum class GraphPart { kNodes, kEdges, kNodeAttribute, kEdgeAttribute, kPostProcess };

// One definition of Anemoi alone. Node attributes are a list of [name, object], anything else is an
// object, in section "part" of the result; null if it is not built here. Throws ConfigError for
// options that make no sense.
Imported import_graph_part(GraphPart part, const Json& definition);

}  // namespace aifs::anemoi
