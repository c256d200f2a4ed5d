// SPDX-License-Identifier: Apache-2.0
// What a kind of edge attribute is: the options that only it reads, and the values that they make.
// The table of all is edge_attribute_kinds.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/tagged.h"
#include "graph/edges/edge_attributes.h"
#include "graph/weights/normalisation.h"

namespace aifs::graph {

// Values of edges, row-major (M, width).
template <class Real>
struct EdgeValues {
  int64_t width = 1;
  std::vector<Real> rows;
};

class EdgeAttributeKind {
 public:
  virtual ~EdgeAttributeKind() = default;

  // Declares the options that this kind reads.
  virtual void bind(config::Binder&) {}
  virtual void validate(const std::string& /*path*/) const {}
  // Scaled values, all computed in double and rounded to fp32 at the end, or not at all. Throws
  // ConfigError for values that have no such norm, and for node attributes that are not there;
  // `path` is that of the attribute, `norm_path` that of its norm.
  virtual EdgeValues<float> make(const EdgeEnds& ends, const std::string& path,
                                 const std::string& norm_path) const = 0;
  virtual EdgeValues<double> make_double(const EdgeEnds& ends, const std::string& path) const = 0;
  // True if values depend on the other edges of a target, wherever these are in the set. Others
  // are made of some of the edges, with peers that have the rest (EdgeEnds).
  virtual bool needs_targets() const { return false; }
  // Values of one edge, if that is known without nodes; else 1.
  virtual int64_t width() const { return 1; }

  // All kinds, in the order in which they are documented; the first is the default.
  static const std::vector<config::Kind<EdgeAttributeKind>>& kinds();
};

}  // namespace aifs::graph
