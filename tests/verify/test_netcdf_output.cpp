// SPDX-License-Identifier: Apache-2.0
#include "verify/netcdf_output.h"

#include <cmath>

#include "core/check.h"
#include "data/sources/netcdf_file.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using verify::NetcdfOutput;

TEST_CASE("what is put into a file is read from it", "[netcdf_output]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.nc";
  {
    NetcdfOutput file(path);
    file.dimension("row", 2);
    file.dimension("cell", 3);
    file.numbers("x", {"cell"}, std::vector<double>{1, NAN, 3}, {{"units", "m"}});
    file.texts("name", "row", {"a", "b c"});
    file.fields("f", {"row", "cell"});
    file.put("f", 1, std::vector<float>{4, 5, 6});
    REQUIRE_FALSE(path_exists(path));
    file.finish();
  }
  const data::NetcdfFile file(path.string());
  REQUIRE(file.text(*file.find("x"), "units") == "m");
  const auto x = file.read_all(*file.find("x"));
  REQUIRE(x[0] == 1.0);
  REQUIRE(std::isnan(x[1]));
  const auto f = file.read_all(*file.find("f"));
  REQUIRE(std::isnan(f[0]));  // never written
  REQUIRE(std::vector<double>(f.begin() + 3, f.end()) == std::vector<double>{4, 5, 6});
  REQUIRE_FALSE(file.find("name")->is_number);
}

TEST_CASE("a file that is not finished leaves nothing", "[netcdf_output]") {
  const test::TemporaryFolder folder;
  {
    NetcdfOutput file(folder.path() / "a.nc");
    file.dimension("row", 2);
  }
  REQUIRE(fs::is_empty(folder.path()));
  REQUIRE_THROWS_WITH(NetcdfOutput(folder.path() / "nowhere" / "a.nc"),
                      ContainsSubstring("a.nc") && ContainsSubstring("cannot be created"));
}
