// SPDX-License-Identifier: Apache-2.0
// Nodes whose coordinates are listed: in the configuration, or in a file of NumPy arrays, of text
// or of netCDF. All in degrees, in the order in which they stand.
#pragma once

#include "graph/nodes/node_kind.h"

namespace aifs::graph {

struct LatLonKind : NodeKind {
  std::vector<double> latitudes, longitudes;
  DegreeArithmetic coordinates = DegreeArithmetic::kFloat64;

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  MeshNodes make(const NodePlace& place) const override;
};

struct NpzKind : NodeKind {
  std::string file, latitudes = "latitudes", longitudes = "longitudes";

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  std::string coordinate_file() const override { return file; }
  MeshNodes make(const NodePlace& place) const override;
};

// The points of a file that lie in an area.
struct LimitedAreaNpzKind : NpzKind {
  AreaOptions area;

  void bind(config::Binder& b) override;
  MeshNodes make(const NodePlace& place) const override;
  const AreaOptions* limits() const override { return &area; }
};

// A table of numbers: one line holds all latitudes, another all longitudes.
struct TextKind : NodeKind {
  std::string file;
  int64_t latitude_line = 1, longitude_line = 0;  // from 0

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  std::string coordinate_file() const override { return file; }
  MeshNodes make(const NodePlace& place) const override;
};

// Two variables of one size, paired element by element.
struct NetcdfKind : NodeKind {
  std::string file, latitudes = "lat", longitudes = "lon";

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  std::string coordinate_file() const override { return file; }
  MeshNodes make(const NodePlace& place) const override;
};

}  // namespace aifs::graph
