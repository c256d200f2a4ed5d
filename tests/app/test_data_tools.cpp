// SPDX-License-Identifier: Apache-2.0
// `aifs-train data ...` as a user calls it.
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using Json = nlohmann::ordered_json;

namespace {

test::CommandResult data(const std::string& arguments) {
  return test::run_command(concat("'", test::program("aifs-train").string(), "' data ", arguments));
}

// A command that must succeed; gives what it prints.
std::string output(const std::string& arguments) {
  const test::CommandResult result = data(arguments);
  INFO(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

bool same_files(const fs::path& a, const fs::path& b) {
  return test::run_command(concat("diff -r '", a.string(), "' '", b.string(), "'")).exit_code == 0;
}

std::string lines_of(const fs::path& file) {
  return path_exists(file) ? read_file(file) : std::string();
}

}  // namespace

TEST_CASE("a store is made, described, proved, copied and comes back bit for bit", "[data_tools]") {
  const test::TemporaryFolder folder;
  const std::string a = (folder.path() / "a.zarr").string(),
                    b = (folder.path() / "b.zarr").string(),
                    c = (folder.path() / "c.zarr").string();
  output(concat("synth '", a, "' --grid o16 --num-variables 5 --num-dates 9"));
  const Json info = Json::parse(output(concat("info '", a, "' --json")));
  CHECK(info["data"]["shape"] == Json({9, 5, 1, 1600}));
  CHECK(info["attributes"]["resolution"] == "o16");
  CHECK(output(concat("info '", a, "'")).find("every 6h") != std::string::npos);
  CHECK(output(concat("check '", a, "'")).find("sound") != std::string::npos);
  output(concat("reshape '", a, "' '", b,
                "' --format 3 --cell-chunks 3 --shard-dates 4 --codec zstd --level 1"));
  const Json other = Json::parse(output(concat("info '", b, "' --json")));
  CHECK(other["zarr_format"] == 3);
  CHECK(other["data"]["shards"] == Json({4, 5, 1, 1602}));
  CHECK(other["data"]["codec"] == "zstd, level 1");
  output(concat("check '", b, "' --threads 2"));
  output(concat("reshape '", b, "' '", c,
                "' --format 2 --cell-chunks 1 --dates 1 --codec blosc-lz4 --threads 2"));
  CHECK(same_files(folder.path() / "a.zarr/data", folder.path() / "c.zarr/data"));
}

TEST_CASE("damage ends with exit code 3, and all of it is named", "[data_tools]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "a.zarr";
  output(concat("synth '", store.string(), "' --grid o8 --num-dates 6"));
  fs::resize_file(store / "data/1.0.0.0", 100);
  write_file_atomic(store / "data/4.0.0.0", "no chunk at all");
  fs::remove(store / "data/5.0.0.0");
  const test::CommandResult result = data(concat("check '", store.string(), "'"));
  CHECK(result.exit_code == 3);
  for (const char* chunk : {"data/1.0.0.0", "data/4.0.0.0", "data/5.0.0.0"})
    CHECK(result.out.find((store / chunk).string()) != std::string::npos);
  const test::CommandResult json = data(concat("check --json '", store.string(), "'"));
  CHECK(json.exit_code == 3);
  CHECK(Json::parse(json.out)["faults"].size() == 2);
  CHECK(Json::parse(json.out)["absent"].size() == 1);
}

TEST_CASE("a copy that was killed goes on where it was", "[data_tools]") {
  const test::TemporaryFolder folder;
  const fs::path from = folder.path() / "a.zarr", to = folder.path() / "b.zarr";
  output(concat("synth '", from.string(), "' --grid o32 --num-variables 4 --num-dates 200"));
  // Slow on purpose: the kill must come before the end.
  const std::string copy =
      concat("'", test::program("aifs-train").string(), "' data reshape '", from.string(), "' '",
             to.string(), "' --codec zstd --level 19 --cell-chunks 2 --threads 1");
  const std::string killed = concat(
      copy, " & p=$!; for i in $(seq 600); do n=$(wc -l < '", (to / "_copy/files").string(),
      "' 2>/dev/null || echo 0); [ \"$n\" -gt 20 ] && break; sleep 0.1; done; kill -KILL $p; ",
      "wait $p");
  CHECK(test::run_command(killed).exit_code == 137);
  const std::string before = lines_of(to / "_copy/files");
  REQUIRE(before.find("data/0.0.0.0") != std::string::npos);
  CHECK(before.find("data/199.0.0.1") == std::string::npos);
  const test::CommandResult info = data(concat("info '", to.string(), "'"));
  CHECK(info.exit_code == 3);  // a reader does not take it for a dataset
  const test::CommandResult resumed = test::run_command(copy);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.err.find("were there already") != std::string::npos);
  CHECK_FALSE(path_exists(to / "_copy"));
  CHECK(output(concat("check '", to.string(), "'")).find("sound") != std::string::npos);
}

TEST_CASE("statistics are computed, compared and written", "[data_tools]") {
  const test::TemporaryFolder folder;
  const std::string store = (folder.path() / "a.zarr").string();
  output(concat("synth '", store, "' --grid o8 --num-variables 3 --num-dates 12 --values waves"));
  const std::string same = output(concat("stats '", store, "'"));
  CHECK(same.find("difference from those of the store: 0 ") != std::string::npos);
  const Json part = Json::parse(
      output(concat("stats '", store, "' --end 2020-01-02 --tendencies 6h,12h --write --json")));
  CHECK(part["last"] == "2020-01-02T18:00:00");
  const Json info = Json::parse(output(concat("info '", store, "' --json")));
  CHECK(info["statistics"]["mean"] == part["statistics"]["mean"]);
  CHECK(info["tendencies"]["12h"]["stdev"] == part["tendencies"]["12h"]["stdev"]);
}

TEST_CASE("the rate of reading a store is measured", "[data_tools]") {
  const test::TemporaryFolder folder;
  const std::string store = (folder.path() / "a.zarr").string();
  output(concat("synth '", store, "' --grid o8 --num-dates 12 --frequency 12h"));
  const Json rates =
      Json::parse(output(concat("bench '", store, "' --threads 1,2 --batches 5 --json")));
  REQUIRE(rates["results"].size() == 5);  // from disk, twice bare and from memory
  for (const Json& result : rates["results"]) {
    if (result["case"] == "bare") continue;
    CHECK(result["samples"] == 5);
    CHECK(result["samples_s"].get<double>() > 0.0);
  }
}

TEST_CASE("what is asked for and cannot be is said, with the exit code of its kind",
          "[data_tools]") {
  const test::TemporaryFolder folder;
  const std::string a = (folder.path() / "a.zarr").string(),
                    b = (folder.path() / "b.zarr").string();
  output(concat("synth '", a, "' --grid o8 --num-dates 4"));
  const auto fails = [&](const std::string& arguments, int code, const char* words) {
    const test::CommandResult result = data(arguments);
    INFO(arguments);
    INFO(result.err);
    CHECK(result.exit_code == code);
    CHECK(result.err.find(words) != std::string::npos);
  };
  fails(concat("info '", b, "'"), 3, "there is no folder");
  fails(concat("synth '", a, "'"), 2, "is there already");
  fails(concat("synth '", b, "' --grid q8"), 2, "--grid");
  fails(concat("reshape '", a, "' '", a, "'"), 2, "is there already");
  fails(concat("reshape '", a, "' '", b, "' --codec lzma"), 2, "blosc-lz4");
  fails(concat("reshape '", a, "' '", b, "' --dates 5"), 2, "4 dates");
  fails(concat("reshape '", a, "' '", b, "' --shard-dates 2"), 2, "format 2 has no shards");
  fails(concat("stats '", a, "' --tendencies 5h"), 2, "multiple");
  fails(concat("stats '", a, "' --start 2031"), 2, "--start");
  fails("frobnicate x", 2, "");
  CHECK_FALSE(path_exists(b));
}
