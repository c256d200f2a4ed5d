// SPDX-License-Identifier: Apache-2.0
// Node sets and reference values that several graph tests use.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "core/rng.h"
#include "core/safetensors.h"
#include "graph/base/edge_list.h"
#include "graph/base/graph.h"
#include "graph/nodes/gaussian_grid.h"
#include "tests/support/paths.h"

namespace aifs::graph::samples {

// Uniformly distributed over the sphere; longitudes in [0, 2 pi).
inline NodeSet random_nodes(const std::string& name, int64_t count, uint64_t seed) {
  const CounterRng rng(seed);
  NodeSet nodes;
  nodes.name = name;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    nodes.lat_rad.push_back(static_cast<float>(std::asin(2 * rng.uniform(2 * i) - 1)));
    nodes.lon_rad.push_back(static_cast<float>(2 * kPi * rng.uniform(2 * i + 1)));
  }
  return nodes;
}

inline NodeSet gaussian_nodes(const std::string& name, const std::string& grid) {
  const Coordinates degrees = gaussian_coordinates(parse_gaussian_grid(grid));
  return {name, radians_from_degrees(degrees.lat_deg), radians_from_degrees(degrees.lon_deg), {}};
}

// A regular lattice, rows of equal latitude: many equal distances.
inline NodeSet lattice_nodes(const std::string& name, int rows, int columns) {
  NodeSet nodes;
  nodes.name = name;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      nodes.lat_rad.push_back(0.7F + 0.03125F * static_cast<float>(i));
      nodes.lon_rad.push_back(0.5F + 0.03125F * static_cast<float>(j));
    }
  }
  return nodes;
}

inline nlohmann::json reference_json(const std::string& file) {
  return nlohmann::json::parse(read_file(aifs::test::fixture("graph/" + file)));
}

inline SafetensorsFile reference_tensors(const std::string& file) {
  return SafetensorsFile(aifs::test::fixture("graph/" + file));
}

// A stored (N, 2) tensor of coordinates.
inline NodeSet reference_nodes(const SafetensorsFile& tensors, const std::string& name) {
  const auto latlon = tensors.doubles("nodes/" + name + "/latlon_rad");
  NodeSet nodes;
  nodes.name = name;
  for (size_t i = 0; i < latlon.size(); i += 2) {
    nodes.lat_rad.push_back(static_cast<float>(latlon[i]));
    nodes.lon_rad.push_back(static_cast<float>(latlon[i + 1]));
  }
  return nodes;
}

// A stored (2, M) tensor of edges.
inline EdgeList reference_edges(const SafetensorsFile& tensors, const std::string& pair) {
  const auto index = tensors.integers("edges/" + pair + "/edge_index");
  EdgeList edges;
  for (size_t e = 0; e < index.size() / 2; ++e) {
    edges.add(static_cast<int32_t>(index[e]), static_cast<int32_t>(index[index.size() / 2 + e]));
  }
  return edges;
}

// Order-free checksum of (source, target) pairs, modulo 2^64.
inline uint64_t sum_of_products(const EdgeList& edges) {
  uint64_t sum = 0;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    sum +=
        static_cast<uint64_t>(edges.source_index[e]) * static_cast<uint64_t>(edges.target_index[e]);
  }
  return sum;
}

template <class T>
double sum(const std::vector<T>& values) {
  double total = 0.0;
  for (const T value : values)
    total += static_cast<double>(value);
  return total;
}

}  // namespace aifs::graph::samples
