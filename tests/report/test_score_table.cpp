// SPDX-License-Identifier: Apache-2.0
#include "report/score_table.h"

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::report;

namespace {

constexpr const char* kLines =
    R"({"variable":"z","lead_time_h":12.0,"region":"nh","rmse":3.0,"skill":null}
{"variable":"z","lead_time_h":6.0,"region":"nh","rmse":2.0,"skill":0.25}
{"variable":"t","lead_time_h":6.0,"region":"global","rmse":1.0,"new_figure":7}
{"variable":"t","lead_ti
)";
constexpr const char* kRows =
    "variable,lead_time_h,region,rmse,skill\nz,12.0,nh,3.0,\nz,6.0,nh,2.0,0.25\nt,6.0,global,1.0,"
    "\n";

double value_of(const ScoreTable& table, const char* figure, size_t v, size_t t, size_t r) {
  return table.figures.at(figure)[table.place(v, t, r)];
}

}  // namespace

TEST_CASE("scores are found by variable, lead time and region, whatever their order",
          "[score_table]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "scores.csv", kRows);
  for (const bool is_json : {false, true}) {
    if (is_json) write_file_atomic(folder.path() / "scores.jsonl", kLines);
    const ScoreTable table = read_scores(folder.path());
    CHECK(table.variables == std::vector<std::string>{"z", "t"});
    CHECK(table.regions == std::vector<std::string>{"nh", "global"});
    CHECK(table.lead_times_h == std::vector<double>{6.0, 12.0});
    CHECK(table.num_damaged == (is_json ? 1 : 0));
    CHECK(value_of(table, "rmse", 0, 1, 0) == 3.0);
    CHECK(value_of(table, "rmse", 1, 0, 1) == 1.0);
    CHECK(std::isnan(value_of(table, "rmse", 1, 1, 1)));
    CHECK(value_of(table, "skill", 0, 0, 0) == 0.25);
    CHECK(std::isnan(value_of(table, "skill", 0, 1, 0)));
    if (is_json) CHECK(value_of(table, "new_figure", 1, 0, 1) == 7.0);
  }
}

TEST_CASE("scores of a season stand beside those of all dates", "[score_table]") {
  const test::TemporaryFolder folder;
  const fs::path lines = folder.path() / "scores.jsonl", rows = folder.path() / "scores.csv";
  write_file_atomic(lines,
                    R"({"variable":"z","lead_time_h":6,"region":"nh","season":"all","rmse":2.0}
{"variable":"z","lead_time_h":6,"region":"nh","season":"DJF","rmse":3.0}
)");
  write_file_atomic(rows, "variable,lead_time_h,region,season,rmse\nz,6,nh,all,2\nz,6,nh,DJF,3\n");
  for (const fs::path& file : {lines, rows}) {
    const ScoreTable table = read_scores(file);
    CHECK(table.regions == std::vector<std::string>{"nh", "nh, DJF"});
    CHECK(value_of(table, "rmse", 0, 0, 0) == 2.0);
    CHECK(value_of(table, "rmse", 0, 0, 1) == 3.0);
  }
}

TEST_CASE("what holds no scores is named", "[score_table]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(read_scores(folder.path() / "none"), ContainsSubstring("does not exist"));
  CHECK_THROWS_WITH(read_scores(folder.path()), ContainsSubstring("no scores.jsonl"));
  write_file_atomic(folder.path() / "scores.jsonl", "{\"variable\":3}\n");
  CHECK_THROWS_WITH(read_scores(folder.path()), ContainsSubstring("has no scores"));
}
