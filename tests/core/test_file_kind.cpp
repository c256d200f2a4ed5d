// SPDX-License-Identifier: Apache-2.0
// Files of each kind are made by the programs that make them, or start as their formats say.
#include "core/file_kind.h"

#include "core/check.h"
#include "core/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

std::string kind_of(const std::string& content) {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "x", content);
  return describe_kind_of_file(folder.path() / "x");
}

}  // namespace

TEST_CASE("archives are told by their first bytes, whatever their names", "[file_kind]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "a", "content");
  const std::string at = concat("cd ", folder.path(), " && ");
  REQUIRE(test::run_command(at + "tar -cf t.zarr a && gzip -c a > g.zarr").exit_code == 0);
  REQUIRE(describe_kind_of_file(folder.path() / "t.zarr") == "a tar archive");
  REQUIRE(describe_kind_of_file(folder.path() / "g.zarr") == "a gzip file");
  const std::string zip = "import zipfile; zipfile.ZipFile('z.zarr', 'w').write('a')";
  REQUIRE(test::run_command(at + "python3 -c \"" + zip + "\"").exit_code == 0);
  REQUIRE(describe_kind_of_file(folder.path() / "z.zarr") == "a zip archive");
}

TEST_CASE("data formats are told by their magic numbers", "[file_kind]") {
  REQUIRE(kind_of("\x89HDF\r\n\x1a\n....") == "an HDF5 or netCDF-4 file");
  REQUIRE(kind_of("CDF\x02....") == "a netCDF-3 file");
  REQUIRE(kind_of("GRIB....") == "a GRIB file");
  REQUIRE(kind_of("\x93NUMPY\x01") == "a NumPy array");
  const test::TemporaryFolder folder;
  const float one = 1.0f;
  write_safetensors(folder.path() / "x", {{"w", DType::kF32, {1}, &one}});
  REQUIRE(describe_kind_of_file(folder.path() / "x") == "a safetensors file");
}

TEST_CASE("texts, folders and nothing are told apart", "[file_kind]") {
  REQUIRE(kind_of(" {\"a\": 1}") == "JSON");
  REQUIRE(kind_of("data:\n  kind: x\n") == "text");
  REQUIRE(kind_of(std::string("\x01\x02\x00\x03", 4)) == "a file of another kind");
  REQUIRE(kind_of("") == "an empty file");
  const test::TemporaryFolder folder;
  REQUIRE(describe_kind_of_file(folder.path()) == "a folder");
  REQUIRE(describe_kind_of_file(folder.path() / "nothing").empty());
  REQUIRE(describe_kind_of_file(folder.path() / std::string(300, 'x')).empty());
}
