// SPDX-License-Identifier: Apache-2.0
#include "forecast/chunk_writer.h"

#include <netcdf.h>

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using forecast::ChunkWriter;

namespace {

constexpr size_t kTimes = 3, kCells = 4000;

// A file with the variables "a" and "b" of (time, cell), one chunk a time, nothing written.
fs::path file_in(const test::TemporaryFolder& folder) {
  const fs::path path = folder.path() / "f.nc";
  int id = -1, dims[2], variable = -1;
  REQUIRE(nc_create(path.c_str(), NC_NETCDF4, &id) == NC_NOERR);
  REQUIRE(nc_def_dim(id, "time", kTimes, &dims[0]) == NC_NOERR);
  REQUIRE(nc_def_dim(id, "cell", kCells, &dims[1]) == NC_NOERR);
  const size_t chunk[2] = {1, kCells};
  for (const char* name : {"a", "b"}) {
    REQUIRE(nc_def_var(id, name, NC_FLOAT, 2, dims, &variable) == NC_NOERR);
    REQUIRE(nc_def_var_chunking(id, variable, NC_CHUNKED, chunk) == NC_NOERR);
    REQUIRE(nc_def_var_deflate(id, variable, 1, 1, 4) == NC_NOERR);
  }
  REQUIRE(nc_close(id) == NC_NOERR);
  return path;
}

std::vector<float> field(float first) {
  std::vector<float> values(kCells);
  for (size_t i = 0; i < kCells; ++i)
    values[i] = first + std::sin(0.01f * static_cast<float>(i));
  return values;
}

std::vector<float> read(const fs::path& path, const char* name, size_t time) {
  int id = -1, variable = -1;
  std::vector<float> values(kCells);
  const size_t start[2] = {time, 0}, count[2] = {1, kCells};
  REQUIRE(nc_open(path.c_str(), NC_NOWRITE, &id) == NC_NOERR);
  REQUIRE(nc_inq_varid(id, name, &variable) == NC_NOERR);
  REQUIRE(nc_get_vara_float(id, variable, start, count, values.data()) == NC_NOERR);
  REQUIRE(nc_close(id) == NC_NOERR);
  return values;
}

}  // namespace

TEST_CASE("the netCDF library reads what was compressed beside it", "[chunk_writer]") {
  const test::TemporaryFolder folder;
  const fs::path path = file_in(folder);
  const std::unique_ptr<ChunkWriter> chunks = forecast::open_chunks(path, {"a", "b"}, 4);
  if (!chunks) return;  // built without HDF5: the netCDF library writes
  const std::vector<float> a0 = field(1.0f), b0 = field(2.0f), b2 = field(3.0f);
  chunks->write({{0, {0, 0}, a0}, {1, {0, 0}, b0}});
  chunks->write({{1, {2, 0}, b2}});
  chunks->finish();
  REQUIRE(read(path, "a", 0) == a0);
  REQUIRE(read(path, "b", 0) == b0);
  REQUIRE(read(path, "b", 2) == b2);
  REQUIRE(fs::file_size(path) < 3 * kCells * sizeof(float));
}

TEST_CASE("a file that is none is an error that names it", "[chunk_writer]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "none.nc";
  write_file_atomic(path, "not a netCDF file");
  const fs::path sound = file_in(folder);
  if (!forecast::open_chunks(sound, {"a"}, 1)) return;
  REQUIRE_THROWS_WITH(forecast::open_chunks(path, {"a"}, 1), ContainsSubstring("none.nc"));
  REQUIRE_THROWS_WITH(forecast::open_chunks(sound, {"c"}, 1), ContainsSubstring("'c'"));
}
