// SPDX-License-Identifier: Apache-2.0
#include "data/sources/netcdf_file.h"

#include <fstream>
#include <thread>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;

namespace {

std::string write_sample(const fs::path& folder, bool classic) {
  const fs::path path = folder / "a.nc";
  test::NetcdfWriter file(path, classic);
  file.dimension("y", 3);
  file.dimension("x", 4);
  std::vector<double> values;
  for (int i = 0; i < 12; ++i)
    values.push_back(i);
  file.variable("a", "i2", {"y", "x"}, {{"units", "K"}, {"scale_factor", std::vector{0.5, 2.0}}},
                values);
  file.variable("b", "f4", {}, {}, {7.5});
  return path.string();
}

std::string message(const std::string& path) {
  try {
    const NetcdfFile file(path);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("variables, attributes and slabs of both formats are read", "[data]") {
  const test::TemporaryFolder folder;
  for (const bool classic : {false, true}) {
    const NetcdfFile file(write_sample(folder.path(), classic));
    REQUIRE(file.variables().size() == 2);
    const NetcdfVariable* a = file.find("a");
    REQUIRE(a);
    CHECK(a->dimensions == std::vector<std::string>{"y", "x"});
    CHECK(a->shape == std::vector<int64_t>{3, 4});
    CHECK_FALSE(a->is_float);
    CHECK(file.text(*a, "units") == "K");
    CHECK(file.text(*a, "scale_factor").empty());
    CHECK(file.numbers(*a, "scale_factor") == std::vector<double>{0.5, 2.0});
    CHECK(file.numbers(*a, "units").empty());
    CHECK(file.numbers(*a, "nothing").empty());
    std::vector<float> slab(4);
    const std::vector<int64_t> start{1, 2}, count{2, 2};
    file.read(*a, start, count, slab.data());
    CHECK(slab == std::vector<float>{6, 7, 10, 11});
    CHECK(file.read_all(*file.find("b")) == std::vector<double>{7.5});
    CHECK_FALSE(file.find("c"));
  }
}

TEST_CASE("several threads read at the same time", "[data]") {
  const test::TemporaryFolder folder;
  const NetcdfFile file(write_sample(folder.path(), false));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto values = file.read_all(*file.find("a"));
        if (values[11] != 11.0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("what cannot be read is said with the name of the file", "[data]") {
  const test::TemporaryFolder folder;
  const std::string absent = (folder.path() / "absent.nc").string();
  CHECK(message(absent) == concat("there is no file '", absent, "'"));
  const fs::path text = folder.path() / "text.nc";
  std::ofstream(text) << "not a netCDF file, but long enough to hold a header of one";
  CHECK(message(text.string()) ==
        concat("netCDF file '", text.string(), "': it is not a netCDF file"));
  for (const bool classic : {false, true}) {
    const std::string path = (folder.path() / concat("cut", classic, ".nc")).string();
    {
      test::NetcdfWriter file(path, classic);
      file.dimension("x", 5000);
      file.variable("a", "f4", {"x"}, {}, std::vector<double>(5000, 1.0));
    }
    CHECK(message(path).empty());
    fs::resize_file(path, fs::file_size(path) / 2);
    CHECK(message(path).find(path) != std::string::npos);
  }
}
