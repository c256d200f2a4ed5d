// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/convex_cell.h"

#include <algorithm>

namespace aifs::graph {

void ConvexCell::reset(double half_width) {
  const double h = half_width;
  vertices_ = {{-h, -h, kBorder}, {h, -h, kBorder}, {h, h, kBorder}, {-h, h, kBorder}};
  measure();
}

void ConvexCell::cut(double a, double b, double c, int32_t neighbour) {
  const size_t count = vertices_.size();
  inside_.resize(count);
  bool all = true;
  for (size_t i = 0; i < count; ++i) {
    inside_[i] = c - a * vertices_[i].u - b * vertices_[i].v;
    all = all && inside_[i] >= 0;
  }
  if (all) return;
  cut_.resize(2 * count);
  Vertex* end = cut_.data();
  for (size_t i = 0; i < count; ++i) {
    const size_t next = i + 1 == count ? 0 : i + 1;
    const Vertex &from = vertices_[i], &to = vertices_[next];
    if (inside_[i] >= 0) *end++ = from;
    if ((inside_[i] >= 0) == (inside_[next] >= 0)) continue;
    const double share = inside_[i] / (inside_[i] - inside_[next]);
    *end++ = {from.u + share * (to.u - from.u), from.v + share * (to.v - from.v),
              inside_[i] >= 0 ? neighbour : from.edge};
  }
  cut_.resize(static_cast<size_t>(end - cut_.data()));
  vertices_.swap(cut_);
  measure();
}

void ConvexCell::measure() {
  radius2_ = 0.0;
  for (const Vertex& vertex : vertices_)
    radius2_ = std::max(radius2_, vertex.u * vertex.u + vertex.v * vertex.v);
}

bool ConvexCell::touches_border() const {
  return std::any_of(vertices_.begin(), vertices_.end(),
                     [](const Vertex& vertex) { return vertex.edge == kBorder; });
}

}  // namespace aifs::graph
