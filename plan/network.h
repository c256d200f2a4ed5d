// SPDX-License-Identifier: Apache-2.0
// The network of a configuration on a tape: what one rank keeps, multiplies and exchanges in one
// forward and backward pass.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/layers.h"

namespace aifs::plan {

// Nodes of a coarser mesh, edges among them, and those from the next finer mesh and to it.
struct MeshTotals {
  int64_t nodes = 0, within = 0, up = 0, down = 0;
};

// Nodes and edges of the whole graph: learnt features have a row for each on every rank.
struct GraphTotals {
  int64_t data = 0, hidden = 0;
  int64_t encoder_edges = 0, processor_edges = 0, decoder_edges = 0;
  std::vector<MeshTotals> coarser = {};  // meshes of a hierarchy, fine to coarse
  int64_t rings = 0;                     // latitudes of the data nodes; 0: not known

  // `meshes` fine to coarse. Edges that the graph lacks are none; throws Error for node sets.
  static GraphTotals of(const graph::Graph& graph,
                        const std::vector<std::string>& meshes = {"hidden"});
  // Of a graph whose edges are elsewhere: `num_edges` counts those from a set to another.
  using NumEdges = std::function<int64_t(const std::string& source, const std::string& target)>;
  static GraphTotals of(const graph::Graph& graph, const std::vector<std::string>& meshes,
                        const NumEdges& num_edges);
};

struct NetworkInput {
  model::ModelOptions model;
  GraphTotals totals;
  int64_t times_in = 2, times_out = 1;
  int64_t prognostic = 0, forcing = 0, diagnostic = 0;  // variables
  int64_t edge_attributes = 3;                          // their width
  int64_t copies = 1;                                   // batch times members
  MatrixSize down = {}, up = {};                        // of a truncated residual
  Types types = {};
  bool gpu = false;

  // down and up of a model with such a residual, on the data nodes of its graph. Throws
  // ConfigError.
  void measure_truncation(const graph::Graph& graph);
};

// Describes what a rank runs of the network; one rank of a pipeline has some layers only.
struct Stage {
  bool encoder = true, decoder = true;
  int64_t layers = 0;
  int64_t in_flight = 1;  // batches between their passes forward and backward, at most
  bool starts = true;     // has the first layer, and what the processor does before it

  // The stages of a pipeline with so many layers each, the encoder before the first, the decoder
  // after the last, for steps of so many batches that overlap.
  static std::vector<Stage> pipeline(const std::vector<int64_t>& layers, int64_t batches);
};

// Describes a finer mesh of a hierarchy: its processors on the way down and up, if it has any, and
// the mappers to the next coarser mesh and back.
struct LevelCost {
  PartCost down, upscale, downscale, up;
};

struct NetworkCost {
  PartCost features, encoder, processor, decoder, output;  // learnt features; output and loss
  std::vector<LevelCost> levels;                           // of a hierarchy, fine to coarse
  double peak = 0.0;          // bytes in the backward pass, Tape::peak()
  double largest_part = 0.0;  // elements of encoder, decoder or one processor layer
  double to_next = 0.0;       // bytes from a stage to the next one in a pass,
  double to_last = 0.0;       // and from the first to the last

  std::vector<const PartCost*> parts() const;
  // The processors of all meshes, and the mappers between these.
  std::vector<const PartCost*> between_mappers() const;
  int64_t parameters() const;     // trainable, of this stage
  int64_t flat_elements() const;  // with padding
  double saved() const;
  double on_host() const;
};

// A part that works on edges, or attends from node set to node set.
struct PlacedPart {
  const char* what;  // "encoder"
  const PartCost& part;
  const EdgeRows& edges;
  int64_t sources = 0;  // own nodes
  bool is_mapper = false;
};
std::vector<PlacedPart> placed_parts(const NetworkCost& cost, const RankRows& rows);

// `tensor`: ranks that share the products of processor layers; for the one that has most of them.
NetworkCost network_cost(const NetworkInput& input, const RankRows& rows, bool divided,
                         const Stage& stage, int64_t tensor = 1);

}  // namespace aifs::plan
