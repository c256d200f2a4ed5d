// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/convex_cell.h"

#include <algorithm>

namespace aifs::graph {

void ConvexCell::reset(double half_width) {
  const double h = half_width;
  vertices_ = {{-h, -h, kBorder}, {h, -h, kBorder}, {h, h, kBorder}, {-h, h, kBorder}};
}

void ConvexCell::cut(double a, double b, double c, int32_t neighbour) {
  inside_.clear();
  bool all = true;
  for (const Vertex& vertex : vertices_) {
    inside_.push_back(c - a * vertex.u - b * vertex.v);
    all = all && inside_.back() >= 0;
  }
  if (all) return;
  cut_.clear();
  for (size_t i = 0; i < vertices_.size(); ++i) {
    const size_t next = i + 1 == vertices_.size() ? 0 : i + 1;
    const Vertex &from = vertices_[i], &to = vertices_[next];
    if (inside_[i] >= 0) cut_.push_back(from);
    if ((inside_[i] >= 0) == (inside_[next] >= 0)) continue;
    const double share = inside_[i] / (inside_[i] - inside_[next]);
    cut_.push_back({from.u + share * (to.u - from.u), from.v + share * (to.v - from.v),
                    inside_[i] >= 0 ? neighbour : from.edge});
  }
  vertices_.swap(cut_);
}

double ConvexCell::radius2() const {
  double most = 0.0;
  for (const Vertex& vertex : vertices_)
    most = std::max(most, vertex.u * vertex.u + vertex.v * vertex.v);
  return most;
}

bool ConvexCell::touches_border() const {
  return std::any_of(vertices_.begin(), vertices_.end(),
                     [](const Vertex& vertex) { return vertex.edge == kBorder; });
}

}  // namespace aifs::graph
