// SPDX-License-Identifier: Apache-2.0
// ICON grid files whose triangles are those of an icosphere.
#pragma once

#include <functional>

#include "core/file_io.h"
#include "graph/nodes/icosphere.h"
#include "tests/support/netcdf_writer.h"

namespace aifs::graph::samples {

// Vertices of a refined icosahedron; a vertex has the level at which it came into being.
// `fault` changes the levels of the vertices and both ends of the edges (counted from 1, those of
// all first ends before the second ones) before they are written.
using IconFault = std::function<void(std::vector<double>& levels, std::vector<double>& ends)>;

inline void write_icon_grid(const fs::path& path, int64_t level, const char* units = "radian",
                            const IconFault& fault = nullptr) {
  Faces faces = icosahedron_faces();
  for (int64_t l = 1; l <= level; ++l)
    faces = refine_faces(faces, icosphere_vertices(l - 1));
  const auto points = icosphere_points(level);
  std::vector<float> lat, lon;
  icosphere_coordinates(points, lat, lon);
  std::vector<double> vertex_level, cell_level(faces.size(), static_cast<double>(level));
  for (size_t v = 0; v < points.size(); ++v) {
    int64_t l = 0;
    while (static_cast<int64_t>(v) >= icosphere_vertices(l))
      ++l;
    vertex_level.push_back(static_cast<double>(l));
  }
  std::vector<double> first, second, clat, clon;
  std::vector<std::vector<double>> corners(3);
  for (const auto& face : faces) {
    Point<double> middle{};
    for (size_t i = 0; i < 3; ++i) {
      const int32_t a = face[i], b = face[(i + 1) % 3];
      corners[i].push_back(a + 1);
      for (size_t k = 0; k < 3; ++k)
        middle[k] += points[static_cast<size_t>(a)][k] / 3.0;
      if (a > b) continue;  // each edge once
      first.push_back(a + 1);
      second.push_back(b + 1);
    }
    clat.push_back(std::atan2(middle[2], std::hypot(middle[0], middle[1])));
    clon.push_back(std::atan2(middle[1], middle[0]));
  }
  const size_t num_edges = first.size();
  first.insert(first.end(), second.begin(), second.end());
  if (fault) fault(vertex_level, first);
  test::NetcdfWriter file(path);
  file.dimension("vertex", points.size());
  file.dimension("cell", faces.size());
  file.dimension("edge", num_edges);
  file.dimension("nc", 2);
  file.dimension("nv", 3);
  const test::NetcdfAttributes in{{"units", std::string(units)}};
  file.variable("vlat", "f8", {"vertex"}, in, {lat.begin(), lat.end()});
  file.variable("vlon", "f8", {"vertex"}, in, {lon.begin(), lon.end()});
  file.variable("clat", "f8", {"cell"}, in, clat);
  file.variable("clon", "f8", {"cell"}, in, clon);
  file.variable("refinement_level_v", "i4", {"vertex"}, {}, vertex_level);
  file.variable("refinement_level_c", "i4", {"cell"}, {}, cell_level);
  file.variable("edge_vertices", "i4", {"nc", "edge"}, {}, first);
  for (size_t i = 1; i < 3; ++i)
    corners[0].insert(corners[0].end(), corners[i].begin(), corners[i].end());
  file.variable("vertex_of_cell", "i4", {"nv", "cell"}, {}, corners[0]);
}

}  // namespace aifs::graph::samples
