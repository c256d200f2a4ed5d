// SPDX-License-Identifier: Apache-2.0
// Edges between near nodes of two sets (neighbour_edges.h), or of some nodes of them: masks are
// attributes of 0 and 1.
#pragma once

#include <optional>

#include "graph/edges/edge_kind.h"
#include "graph/edges/neighbour_edges.h"

namespace aifs::graph {

struct NeighbourKind : EdgeKind {
  std::string source_mask, target_mask;

  EdgeList make(const EdgePlace& place) const final;
  bool divides() const override { return true; }

 protected:
  void bind_masks(config::Binder& b);
  virtual EdgeList search(const SearchNodes& source, const SearchNodes& target,
                          int64_t threads) const = 0;
};

struct KnnKind : NeighbourKind {
  int64_t num_neighbours = 3;

  void bind(config::Binder& b) override;
  void check(const EdgePlace& place) const override;

 protected:
  EdgeList search(const SearchNodes& source, const SearchNodes& target,
                  int64_t threads) const override;
};

struct ReversedKnnKind : NeighbourKind {
  int64_t num_neighbours = 3;

  void bind(config::Binder& b) override;
  void check(const EdgePlace& place) const override;

 protected:
  EdgeList search(const SearchNodes& source, const SearchNodes& target,
                  int64_t threads) const override;
};

struct MutualKnnKind : NeighbourKind {
  int64_t num_neighbours = 3;
  std::optional<int64_t> reversed_num_neighbours;  // empty: as many

  void bind(config::Binder& b) override;
  void check(const EdgePlace& place) const override;
  bool divides() const override { return false; }

 protected:
  EdgeList search(const SearchNodes& source, const SearchNodes& target,
                  int64_t threads) const override;
};

struct CutOffKind : NeighbourKind {
  double cutoff_factor = 0.6;
  std::optional<double> cutoff_distance_km;  // in place of the factor
  int64_t max_neighbours = 64;               // 0: no limit

  void bind(config::Binder& b) override;
  CutOff limits() const;

 protected:
  EdgeList search(const SearchNodes& source, const SearchNodes& target,
                  int64_t threads) const override;
};

struct ReversedCutOffKind : CutOffKind {
  void bind(config::Binder& b) override;

 protected:
  EdgeList search(const SearchNodes& source, const SearchNodes& target,
                  int64_t threads) const override;
};

}  // namespace aifs::graph
