// SPDX-License-Identifier: Apache-2.0
// The graph of a run. Where ranks share a sample each of them builds a slice of the edges, or reads
// it from the file where the graph stands, and keeps those that end at its nodes. Else the main
// rank has all of the graph and gives it to all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/run/data_parts.h"
#include "app/run/plan_request.h"
#include "app/run/run_config.h"
#include "graph/base/graph.h"
#include "graph/graph_part.h"
#include "graph/graph_report.h"
#include "graph/graph_slice.h"
#include "graph/partition.h"
#include "parallel/process_mesh.h"
#include "plan/step_plan.h"

namespace aifs::app {

// Describes the edges that this rank has, and what it knows of those of others.
struct DividedGraph {
  graph::GraphPartition partition;
  std::vector<graph::OwnEdges> own;         // of each edge set; the network takes them
  std::vector<graph::EdgeTraffic> traffic;  // of each edge set
};

// How the ranks of a run come by its graph.
enum class GraphWay {
  kSent,   // the main rank has all of it
  kRead,   // each rank reads a slice of the file
  kBuilt,  // each rank builds a slice
};

struct GraphParts {
  graph::Graph graph;  // divided: edge sets without edges, but for those that matrices are made of
  graph::GraphReport report;
  std::string hash;
  double seconds = 0.0;
  GraphWay way = GraphWay::kSent;
  std::string file = {};          // to be read, or to be written where it is built; may be empty
  std::string options_hash = {};  // of a file to be written
  std::optional<DividedGraph> divided = {};

  // From a set to another, on all ranks; 0 where the graph has none.
  int64_t num_edges(const std::string& source, const std::string& target) const;
  // app::step_input() of the whole graph.
  plan::StepInput step_input(const RunConfig& config, const PlanRequest& request) const;
  // How the ranks of the step divide the graph. Their number is that of a sample of this run, or 1.
  plan::Division division(const plan::StepInput& input) const;
};

// Throws ConfigError unless the data nodes of a graph and the cells of a dataset are the same
// points.
void check_same_grid(const graph::NodeSet& nodes, const data::DatasetInfo& info);

// Finds out how the ranks come by the graph, and builds or loads it if the main rank has all of it.
// With `divides` that is so only where ranks can neither read nor build slices; else there is no
// report yet. Throws ConfigError, DataError. Local to the main rank.
GraphParts make_graph(const RunConfig& config, const std::vector<DataParts>& datasets,
                      bool divides);

// Gives every rank the graph of the main rank, or its part of it with the report. All ranks have
// the datasets. Throws FailedTogether. Collective over all ranks.
void share_graph(GraphParts& parts, const RunConfig& config, const std::vector<DataParts>& datasets,
                 const parallel::ProcessMesh& mesh);

// Divides slices of a graph over the ranks that share a sample. Collective over these.
void divide_graph(GraphParts& parts, graph::GraphSlice slice, const RunConfig& config,
                  parallel::Communicator& sample);

}  // namespace aifs::app
