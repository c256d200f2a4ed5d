// SPDX-License-Identifier: Apache-2.0
#include "graph/base/netcdf_arrays.h"

#include <limits>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::graph;

TEST_CASE("variables of a netCDF file come back in C order", "[netcdf_arrays]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "mesh.nc";
  {
    test::NetcdfWriter file(path);
    file.dimension("nv", 2);
    file.dimension("cell", 3);
    file.variable("clat", "f8", {"cell"}, {{"units", std::string("radian")}}, {0.1, -0.2, 0.3});
    file.variable("corner", "i4", {"nv", "cell"}, {}, {1, 2, 3, 4, 5, 6});
    file.variable("gap", "f8", {"cell"}, {{"_FillValue", std::vector<double>{-9.0}}},
                  {1.0, -9.0, 2.0});
  }
  const NetcdfArrays arrays(path);
  REQUIRE(arrays.numbers("clat") == std::vector<double>{0.1, -0.2, 0.3});
  REQUIRE(arrays.integers("corner") == std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  REQUIRE(arrays.shape("corner") == std::vector<int64_t>{2, 3});
  REQUIRE(arrays.units("clat") == "radian");
  REQUIRE(arrays.units("corner").empty());
  REQUIRE_THROWS_WITH(arrays.numbers("gap"), ContainsSubstring("'gap': value 1 is missing"));
  REQUIRE_THROWS_WITH(arrays.numbers("none"), ContainsSubstring("mesh.nc', variable 'none'"));
}

TEST_CASE("what is no netCDF file is named", "[netcdf_arrays]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "text.nc";
  write_file_atomic(path, "no mesh");
  REQUIRE_THROWS_AS(NetcdfArrays(path), DataError);
  REQUIRE_THROWS_WITH(NetcdfArrays(path), ContainsSubstring("text.nc"));
  REQUIRE_THROWS_WITH(NetcdfArrays(folder.path() / "none.nc"), ContainsSubstring("no file"));
}
