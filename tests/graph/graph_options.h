// SPDX-License-Identifier: Apache-2.0
// Options of graphs for tests.
#pragma once

#include <cstdint>
#include <string>

#include "graph/nodes/tri_kinds.h"
#include "graph/options.h"

namespace aifs::graph::samples {

// A named grid around an icosphere.
inline GraphOptions options_of(const std::string& grid, int64_t refinement) {
  GraphOptions options;
  options.grid = grid;
  options.hidden.kind.set(TriKind(refinement));
  return options;
}

// Parses a section "graph" from JSON text.
inline GraphOptions parsed(const std::string& text) {
  GraphOptions options;
  config::read(options, config::parse_json(text, "test"), "graph", {});
  return options;
}

}  // namespace aifs::graph::samples
