// SPDX-License-Identifier: Apache-2.0
// Times the building, storing and loading of graphs, each in a process of its own, so that the peak
// of its memory is known. Counts of edges are held against those that Anemoi's library has.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::bench {

struct GraphBenchOptions {
  // <data grid>-tri<refinement> (multi-scale) or <data grid>-<hidden grid> (no edges among hidden
  // nodes).
  std::vector<std::string> graphs = {"o96-tri5", "o96-o48",    "n320-tri6",  "n320-tri7",
                                     "n320-o96", "o1280-tri7", "o1280-tri8", "o1280-o320"};
  int64_t threads = 0;      // 0: all of the machine
  int64_t repetitions = 1;  // the fastest counts
  fs::path folder;          // for the files, which are removed again
};

// Returns one result a graph, also given to `visit` when it is there: num_nodes, num_edges and
// reference_edges (data->hidden, hidden->hidden, hidden->data; the last where known) and whether
// they are `within` 1 in 20,000 (edges as long as the radius); content (hash); file_mib;
//   build_s, build_cpu_s, build_gib  nodes, edges, attributes and areas, in memory
//   parts_s                          by part of the graph
//   save_s, write_s                  into a file, flushed; writing a file of as many bytes alone
//   load_s, load_cpu_s, load_gib     from the file, checked; read_s: reading its bytes alone
// A graph that fails has "error" and no times. Throws ConfigError for a name that is none.
nlohmann::ordered_json time_graphs(const GraphBenchOptions& options,
                                   const std::function<void(const nlohmann::ordered_json&)>& visit);

// Returns a result in one line, for people.
std::string graph_text(const nlohmann::ordered_json& result);

}  // namespace aifs::bench
