// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/file_kinds.h"

#include "core/check.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"
#include "tests/support/zip_writer.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

namespace {

const std::vector<double> kLat{10.0, -20.5, 89.0}, kLon{0.0, 359.5, 181.0};

// A one-dimensional array of doubles as numpy.save writes it.
std::string npy(const std::vector<double>& values) {
  std::string header =
      concat("{'descr': '<f8', 'fortran_order': False, 'shape': (", values.size(), ",), }");
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  return bytes;
}

std::string quoted_path(const fs::path& path) {
  return nlohmann::json(path.string()).dump();
}

void require_points(const MeshNodes& nodes) {
  REQUIRE(nodes.set.lat_rad == radians_from_degrees(kLat));
  REQUIRE(nodes.set.lon_rad == radians_from_degrees(kLon));
}

}  // namespace

TEST_CASE("listed coordinates are nodes, in either arithmetic", "[file_kinds]") {
  const std::string lists = R"("latitudes": [10, -20.5, 89], "longitudes": [0, 359.5, 181])";
  require_points(nodes_of(concat(R"({"kind": "latlon", )", lists, "}")));
  REQUIRE(nodes_of(concat(R"({"kind": "latlon", "coordinates": "float32", )", lists, "}"))
              .set.lat_rad == radians_from_degrees(kLat, DegreeArithmetic::kFloat32));
  REQUIRE_THROWS_WITH(nodes_of(R"({"kind": "latlon", "latitudes": [1], "longitudes": []})"),
                      ContainsSubstring("'graph.nodes.n.longitudes': there are 0 of them"));
}

TEST_CASE("arrays of a .npz file are nodes, all or those of an area", "[file_kinds]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "grid.npz";
  write_file_atomic(path, test::zip_bytes({{"la.npy", npy(kLat)}, {"lo.npy", npy(kLon)}}));
  const std::string keys =
      concat(R"("file": )", quoted_path(path), R"(, "latitudes": "la", "longitudes": "lo")");
  require_points(nodes_of(concat(R"({"kind": "npz", )", keys, "}")));
  Sets before;
  before.emplace("data", at_degrees("data", {{11.0}, {1.0}}));
  REQUIRE(nodes_of(concat(R"({"kind": "limited_area_npz", "margin_km": 300, )", keys, "}"), before)
              .set.num_nodes() == 1);
  REQUIRE_THROWS_AS(nodes_of(concat(R"({"kind": "npz", "file": )", quoted_path(path), "}")),
                    DataError);
  REQUIRE_THROWS_WITH(nodes_of(R"({"kind": "npz"})"), ContainsSubstring("'graph.nodes.n.file'"));
}

TEST_CASE("two lines of a text file are longitudes and latitudes", "[file_kinds]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "grid.txt";
  write_file_atomic(path, "# made by hand\n0 359.5 181\n\n1 2 3 # not used\n10, -20.5, 89\n");
  const auto text = [&](const std::string& more) {
    return concat(R"({"kind": "text", "file": )", quoted_path(path), more, "}");
  };
  require_points(nodes_of(text(R"(, "latitude_line": 2)")));
  REQUIRE_THROWS_WITH(nodes_of(text(R"(, "latitude_line": 3)")),
                      ContainsSubstring("'graph.nodes.n.latitude_line': line 3"));
  write_file_atomic(path, "0 1 two\n3 4 5\n");
  REQUIRE_THROWS_WITH(nodes_of(text("")), ContainsSubstring("line 1: 'two' is no number"));
}

TEST_CASE("two variables of a netCDF file are paired one by one", "[file_kinds]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "grid.nc";
  {
    test::NetcdfWriter file(path);
    file.dimension("n", 3);
    file.dimension("m", 2);
    file.variable("lat", "f8", {"n"}, {}, kLat);
    file.variable("lon", "f8", {"n"}, {}, kLon);
    file.variable("few", "f8", {"m"}, {}, {1.0, 2.0});
  }
  const std::string start = concat(R"({"kind": "netcdf", "file": )", quoted_path(path));
  require_points(nodes_of(start + "}"));
  REQUIRE_THROWS_WITH(nodes_of(start + R"(, "longitudes": "few"})"),
                      ContainsSubstring("3 latitudes and 2 longitudes"));
}
