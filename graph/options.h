// SPDX-License-Identifier: Apache-2.0
// The section "graph" of a configuration. The defaults are the multi-scale graph that Anemoi ships
// for GNNs: data nodes join the hidden mesh within 0.6 of its spacing, hidden nodes talk on all
// levels of refinement, and every data node listens to its three nearest hidden nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "graph/base/geometry.h"
#include "graph/weights/area_weights.h"
#include "graph/weights/normalisation.h"

namespace aifs::graph {

enum class HiddenKind { kTri };
enum class MapperEdgeKind { kCutOff, kKnn };
enum class ProcessorEdgeKind { kMultiScale };

struct HiddenOptions {
  HiddenKind kind = HiddenKind::kTri;
  int64_t refinement = 5;

  void bind(config::Binder& b);
};

// Edges between data and hidden nodes.
struct MapperEdgeOptions {
  MapperEdgeKind kind = MapperEdgeKind::kCutOff;
  double cutoff_factor = 0.6;
  int64_t max_neighbours = 64;
  int64_t num_neighbours = 3;

  void bind(config::Binder& b);
};

struct ProcessorEdgeOptions {
  ProcessorEdgeKind kind = ProcessorEdgeKind::kMultiScale;
  std::vector<int64_t> levels;  // empty: all
  bool include_level_0 = false;
  int64_t x_hops = 1;

  void bind(config::Binder& b);
  // The levels meant for a mesh of this refinement.
  std::vector<int64_t> levels_of(int64_t refinement) const;
};

struct AreaWeightOptions {
  AreaWeightKind kind = AreaWeightKind::kSpherical;
  Norm norm = Norm::kUnitMax;

  void bind(config::Binder& b);
};

struct GraphOptions {
  std::string grid = "dataset";
  DegreeArithmetic coordinates = DegreeArithmetic::kFloat64;
  HiddenOptions hidden;
  MapperEdgeOptions encoder;
  ProcessorEdgeOptions processor;
  MapperEdgeOptions decoder{.kind = MapperEdgeKind::kKnn};
  Norm edge_length_norm = Norm::kUnitStd;
  Norm edge_dirs_norm = Norm::kUnitStd;
  AreaWeightOptions area_weight;
  std::optional<int64_t> threads;  // empty: all cores it may use
  std::string file;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// SHA-256 of everything that changes the graph (not `threads`, not `file`).
std::string options_hash(const GraphOptions& options);

constexpr auto enum_table(HiddenKind) {
  using enum HiddenKind;
  return std::to_array<EnumName<HiddenKind>>({{kTri, "tri"}});
}

constexpr auto enum_table(MapperEdgeKind) {
  using enum MapperEdgeKind;
  return std::to_array<EnumName<MapperEdgeKind>>({{kCutOff, "cutoff"}, {kKnn, "knn"}});
}

constexpr auto enum_table(ProcessorEdgeKind) {
  using enum ProcessorEdgeKind;
  return std::to_array<EnumName<ProcessorEdgeKind>>({{kMultiScale, "multi_scale"}});
}

}  // namespace aifs::graph
