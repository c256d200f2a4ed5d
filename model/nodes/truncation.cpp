// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/truncation.h"

#include <ATen/ATen.h>

#include <charconv>
#include <numbers>

#include "core/check.h"
#include "graph/edges/edge_attributes.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/tri_nodes.h"
#include "model/nodes/latlon_rows.h"

namespace aifs::model {

namespace {

constexpr int64_t kFinestIcosphere = 9;

graph::NodeSet node_set(const at::Tensor& latlon_rad) {
  const at::Tensor rows = latlon_rad.cpu().to(at::kFloat).contiguous();
  const auto values = rows.accessor<float, 2>();
  graph::NodeSet nodes;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    nodes.lat_rad.push_back(values[i][0]);
    nodes.lon_rad.push_back(values[i][1]);
  }
  return nodes;
}

SparseMatrix interpolation(const graph::NodeSet& from, const graph::NodeSet& to, int64_t neighbours,
                           double sigma_rad) {
  const graph::EdgeList edges = graph::knn_edges(from, to, neighbours, /*num_threads=*/1);
  const std::vector<float> weights = graph::gaussian_distance_weights<float>(
      {from, to, edges.source_index, edges.target_index, 1}, sigma_rad);
  const auto indices = [](const std::vector<int32_t>& list) {
    return at::tensor(at::ArrayRef<int32_t>(list), at::kInt);
  };
  return SparseMatrix::create(indices(edges.target_index), indices(edges.source_index),
                              at::tensor(at::ArrayRef<float>(weights), at::kFloat), to.num_nodes(),
                              from.num_nodes())
      .row_normalised();
}

}  // namespace

Truncation make_truncation(const at::Tensor& latlon_rad, const at::Tensor& coarse_latlon_rad,
                           int64_t neighbours, double sigma_rad) {
  const graph::NodeSet fine = node_set(latlon_rad), coarse = node_set(coarse_latlon_rad);
  return {interpolation(fine, coarse, neighbours, sigma_rad),
          interpolation(coarse, fine, neighbours, sigma_rad)};
}

at::Tensor coarse_grid(const std::string& name) {
  const std::string mesh = "tri";
  if (name.starts_with(mesh)) {
    int64_t refinement = -1;
    const char *begin = name.data() + mesh.size(), *end = name.data() + name.size();
    const auto parsed = std::from_chars(begin, end, refinement);
    if (parsed.ptr != end || begin == end || refinement < 0 || refinement > kFinestIcosphere) {
      throw Error(concat("'", name, "' is no mesh"), "tri0 to tri9 are icospheres");
    }
    const graph::TriNodes nodes = graph::tri_nodes(refinement);
    return latlon_rows(nodes.lat_rad, nodes.lon_rad);
  }
  const graph::Coordinates grid = graph::gaussian_coordinates(graph::parse_gaussian_grid(name));
  std::vector<float> lat_rad, lon_rad;
  for (size_t i = 0; i < grid.lat_deg.size(); ++i) {
    lat_rad.push_back(static_cast<float>(grid.lat_deg[i] * std::numbers::pi / 180.0));
    lon_rad.push_back(static_cast<float>(grid.lon_deg[i] * std::numbers::pi / 180.0));
  }
  return latlon_rows(lat_rad, lon_rad);
}

}  // namespace aifs::model
