// SPDX-License-Identifier: Apache-2.0
#include "verify/stations.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using verify::read_observations;

namespace {

const std::vector<std::string> kWanted{"2t", "tp"};

std::string fault_of(const std::string& table) {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "s.csv", table);
  try {
    read_observations(folder.path() / "s.csv", kWanted);
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a table gives stations, dates and values, and what is missing", "[stations]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "s.csv",
                    "station,latitude,longitude,height,time,2t,gust,tp\r\n"
                    "A,50.5,8.25,112,2020-01-01T06:00,273.5,3,0.25\n"
                    "\n"
                    "\"B, the \"\"high\"\" one\",-20,190,,2020-01-01T06:00:00,, 9,NA\n"
                    "A,50.5,8.25,112,2020-01-01T12,274.5,3,nan\n");
  const auto found = read_observations(folder.path() / "s.csv", kWanted);
  REQUIRE(found.variables == kWanted);
  REQUIRE(found.has_heights);
  REQUIRE(found.stations.size() == 2);
  REQUIRE(found.stations[1].name == "B, the \"high\" one");
  REQUIRE(found.stations[1].longitude_deg == 190.0);
  REQUIRE(found.values.size() == 2);
  const auto& six = found.values.at(parse_date("2020-01-01T06"));
  REQUIRE(six[0] == 273.5f);
  REQUIRE(std::isnan(six[1]));
  REQUIRE(six[2] == 0.25f);
  REQUIRE(std::isnan(six[3]));
  const auto& twelve = found.values.at(parse_date("2020-01-01T12"));
  REQUIRE(twelve[0] == 274.5f);
  REQUIRE(std::isnan(twelve[2]));
}

TEST_CASE("bad rows of a table are named by their line", "[stations]") {
  const std::string head = "station,latitude,longitude,time,2t\n", good = "A,1,2,2020-01-01,3\n";
  REQUIRE(fault_of(head + good) == "nothing");
  struct Fault {
    std::string table, words;
  };
  for (const auto& [table, words] : std::vector<Fault>{
           {head + good + "B,1,2,2020-01-01\n", "line 3: 4 cells, but 5 columns"},
           {head + "A,1,2,2020-01-01,warm\n", "line 2: 'warm' in column '2t'"},
           {head + "A,91,2,2020-01-01,3\n", "line 2: 91 N 2 E is no place"},
           {head + "A,,2,2020-01-01,3\n", "is no place"},
           {head + "A,1,2,yesterday,3\n", "line 2: "},
           {head + ",1,2,2020-01-01,3\n", "line 2: the station has no name"},
           {head + good + "A,1,2,2020-01-01T00:00,3\n",
            "line 3: station 'A' has values of that "
            "time in line 2"},
           {head + good + "A,1,5,2020-01-02,3\n", "line 3: station 'A' was at 1 N 2 E"},
           {head + "\"A,1,2,2020-01-01,3\n", "line 2: a quote"},
           {"station,latitude,time,2t\n", "line 1: there is no column 'longitude'"},
           {"station,latitude,longitude,time,2t,2t\n", "line 1: column '2t' is there twice"},
           {"station,latitude,longitude,time,3t\nA,1,2,2020-01-01,3\n", "none of the variables"},
           {"", "is empty"}}) {
    INFO(table);
    REQUIRE_THAT(fault_of(table), ContainsSubstring("s.csv") && ContainsSubstring(words));
  }
}

TEST_CASE("time series of a netCDF file are read in either order, unpacked", "[stations]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "s.nc";
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "hours since 2020-01-01", {6, 12});
    file.dimension("station", 3);
    file.variable("lat", "f8", {"station"}, {}, {10, 20, 30});
    file.variable("lon", "f8", {"station"}, {}, {1, 2, 3});
    file.variable("altitude", "f8", {"station"}, {}, {1, 2, 3});
    file.variable("2t", "i2", {"station", "time"},
                  {{"_FillValue", std::vector<double>{-99}},
                   {"scale_factor", std::vector<double>{0.5}},
                   {"add_offset", std::vector<double>{273}}},
                  {0, 1, 2, -99, 4, 5});
    file.variable("tp", "f4", {"time", "station"}, {}, {1, 2, 3, 4, 5, 6});
    file.variable("other", "f4", {"time", "station"}, {}, {1, 2, 3, 4, 5, 6});
  }
  const auto found = read_observations(path, kWanted);
  REQUIRE(found.has_heights);
  REQUIRE(found.stations[2].latitude_deg == 30.0);
  const auto& six = found.values.at(parse_date("2020-01-01T06"));
  REQUIRE(six == std::vector<float>{273.0f, 274.0f, 275.0f, 1.0f, 2.0f, 3.0f});
  const auto& twelve = found.values.at(parse_date("2020-01-01T12"));
  REQUIRE(twelve[0] == 273.5f);
  REQUIRE(std::isnan(twelve[1]));
  REQUIRE(twelve[5] == 6.0f);
}

TEST_CASE("station files that cannot be understood are named", "[stations]") {
  const test::TemporaryFolder folder;
  REQUIRE_THROWS_WITH(read_observations(folder.path() / "none.csv", kWanted),
                      ContainsSubstring("none.csv") && ContainsSubstring("does not exist"));
  const fs::path path = folder.path() / "s.nc";
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "hours since 2020-01-01", {6, 6});
    file.dimension("station", 1);
    file.variable("latitude", "f8", {"station"}, {}, {10});
    file.variable("longitude", "f8", {"station"}, {}, {1});
    file.variable("2t", "f4", {"station", "time"}, {}, {0, 1});
  }
  REQUIRE_THROWS_WITH(read_observations(path, kWanted),
                      ContainsSubstring("s.nc") && ContainsSubstring("is there twice"));
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "fortnights", {6});
    file.dimension("station", 1);
    file.variable("latitude", "f8", {"station"}, {}, {10});
    file.variable("longitude", "f8", {"station"}, {}, {1});
  }
  REQUIRE_THROWS_WITH(read_observations(path, kWanted), ContainsSubstring("s.nc': 'time'"));
}
