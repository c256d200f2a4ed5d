// SPDX-License-Identifier: Apache-2.0
#include "train/output/csv_log.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;
using train::CsvLines;

namespace {

const std::vector<std::string> kColumns{"step", "loss", "text"};

void write_rows(CsvLines& csv, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step)
    csv.add({{"step", step}, {"loss", 0.5}, {"other", 7}});
  csv.flush();
}

}  // namespace

TEST_CASE("a file has a head, and a row for each object with the columns alone", "[csv_log]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "m.csv";
  CsvLines csv(path, kColumns, -1);
  write_rows(csv, 1, 2);
  REQUIRE(read_file(path) == "step,loss,text\n1,0.5,\n2,0.5,\n");
  csv.add({{"step", 3}, {"loss", 0.1}, {"text", "say \"a, b\"\nc"}});
  csv.add({{"step", 4}, {"loss", std::numeric_limits<double>::infinity()}, {"text", nullptr}});
  REQUIRE(read_file(path) == "step,loss,text\n1,0.5,\n2,0.5,\n");  // until it is flushed
  csv.flush();
  REQUIRE(read_file(path) ==
          "step,loss,text\n1,0.5,\n2,0.5,\n3,0.1,\"say \"\"a, b\"\"\nc\"\n4,,\n");
}

TEST_CASE("a resumed run keeps rows up to its step, a new one none", "[csv_log]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "m.csv";
  CsvLines before(path, kColumns, -1);
  write_rows(before, 1, 4);
  REQUIRE(append_whole(path, "x,1,\n5,0.").empty());
  SECTION("resumed") {
    CsvLines csv(path, kColumns, 2);
    REQUIRE(read_file(path) == "step,loss,text\n1,0.5,\n2,0.5,\n");
    write_rows(csv, 3, 3);
    REQUIRE(read_file(path) == "step,loss,text\n1,0.5,\n2,0.5,\n3,0.5,\n");
  }
  SECTION("new") {
    const CsvLines csv(path, kColumns, -1);
    REQUIRE(read_file(path).empty());
  }
  SECTION("of other columns") {
    CsvLines csv(path, {"step", "loss"}, 2);
    write_rows(csv, 3, 3);
    REQUIRE(read_file(path) == "step,loss\n3,0.5\n");
    REQUIRE(read_file(folder.path() / "m.before-step-3.csv").starts_with("step,loss,text\n1,"));
  }
}

TEST_CASE("a folder that vanishes and a full disk are counted, and training goes on", "[csv_log]") {
  const test::TemporaryFolder folder;
  const fs::path sub = folder.path() / "sub", path = sub / "m.csv";
  make_directories(sub);
  CsvLines csv(path, kColumns, -1);
  fs::remove_all(sub);
  write_rows(csv, 1, 1);
  REQUIRE(csv.num_failures() == 1);
  make_directories(sub);
  write_rows(csv, 2, 2);
  {
    const test::FileSizeLimit limit(read_file(path).size() + 3);
    write_rows(csv, 3, 3);
  }
  REQUIRE(csv.num_failures() == 2);
  write_rows(csv, 4, 4);
  REQUIRE(read_file(path) == "step,loss,text\n2,0.5,\n4,0.5,\n");
}

TEST_CASE("a file that cannot be started is a failure that is counted", "[csv_log]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "m.csv");
  CsvLines csv(folder.path() / "m.csv", kColumns, 5);
  write_rows(csv, 6, 6);
  REQUIRE(csv.num_failures() == 2);
}
