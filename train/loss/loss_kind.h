// SPDX-License-Identifier: Apache-2.0
// What a kind of loss is: the options that only it reads, what they must hold, and the loss that
// they make. docs/extending.md shows how to add one; the table of all is loss_kinds.cpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/tagged.h"
#include "data/fields/dataset.h"
#include "graph/base/graph.h"
#include "train/loss/loss_term.h"
#include "train/loss/sparse_rows.h"

namespace aifs::train {

// The dataset and graph that a loss is made for.
struct LossInputs {
  const data::VariableTable& variables;
  const data::Statistics& statistics;                     // after the normaliser's remap
  const std::map<int64_t, data::Statistics>& tendencies;  // by time difference in seconds
  const graph::NodeSet& nodes;                            // of the data grid, all of them
  const graph::EdgeSet* edges = nullptr;  // from these nodes to these, if the graph has some
  std::string grid_name = {};             // graph.grid
  int64_t timestep_s = 0;
  int64_t times_out = 1;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Names of the columns of targets; empty: outputs, as the network gives them.
  std::vector<std::string> target_names = {};
  // Sees each sparse matrix that a loss is built with, in the order of the losses (smoothers of
  // scales first), and gives the one that is used.
  std::function<SparseRowsPtr(const SparseRowsPtr&)> matrix_used = {};

  // The matrix that a loss uses in place of one that was made for it.
  SparseRowsPtr used(SparseRowsPtr made) const { return matrix_used ? matrix_used(made) : made; }
};

// A term that is being made.
struct LossPlace {
  const LossInputs& inputs;
  std::string path;  // JSON path of the term
  // Scalers and columns of the term. A loss of waves says how many errors it has in place of those
  // of nodes.
  std::function<ElementaryOptions(int64_t modes)> elementary;
};

class LossKind {
 public:
  virtual ~LossKind() = default;

  // Declares the options that this kind reads beside those of every term.
  virtual void bind(config::Binder&) {}
  // Throws ConfigError for options that do not go together; `path` is that of the term.
  virtual void validate(const std::string& /*path*/) const {}
  // Throws ConfigError for options that do not fit the data; of `inputs.nodes` only the number
  // counts.
  virtual void check(const LossInputs&, const std::string& /*path*/) const {}
  virtual LossPtr make(const LossPlace& place) const = 0;

  // True if it compares members of an ensemble, of which there must be two.
  virtual bool compares_members() const { return false; }
  // True if its errors are of waves, not of nodes: it is weighed by the scaler "spectral", and a
  // NaN has no meaning.
  virtual bool is_of_waves() const { return false; }

  // All kinds, in the order in which they are documented; the first is the default.
  static const std::vector<config::Kind<LossKind>>& kinds();
};

// A loss that is a function of the error of each point.
class PointwiseKind : public LossKind {
 public:
  virtual PointwiseError error() const = 0;
  LossPtr make(const LossPlace& place) const final {
    return std::make_shared<PointwiseTerm>(error(), place.elementary(0));
  }
};

}  // namespace aifs::train
