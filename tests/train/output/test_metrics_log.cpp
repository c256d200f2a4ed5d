// SPDX-License-Identifier: Apache-2.0
#include "train/output/metrics_log.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;
using train::JsonLines;

namespace {

nlohmann::ordered_json line(int64_t step) {
  return {{"step", step}, {"loss", 0.5}};
}

std::string text(std::initializer_list<int64_t> steps) {
  std::string all;
  for (const int64_t step : steps)
    all += line(step).dump() + "\n";
  return all;
}

}  // namespace

TEST_CASE("every line is in the file as soon as it is written", "[metrics_log]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "m.jsonl";
  JsonLines lines(path, -1);
  REQUIRE(read_file(path).empty());
  lines.write(line(1));
  REQUIRE(read_file(path) == text({1}));
  lines.write(line(2));
  REQUIRE(read_file(path) == text({1, 2}));
  REQUIRE(lines.num_failures() == 0);
}

TEST_CASE("a new run starts an empty file", "[metrics_log]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "m.jsonl";
  write_file_atomic(path, text({1, 2}));
  const JsonLines lines(path, -1);
  REQUIRE(read_file(path).empty());
}

TEST_CASE("a resumed run keeps lines up to its step, and no broken ones", "[metrics_log]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "m.jsonl";
  write_file_atomic(path, text({1, 2}) + "{\"step\": 2, \"lo\n[]\n{\"loss\": 1}\n" + text({3, 4}) +
                              "{\"step\": 5");
  JsonLines lines(path, 3);
  REQUIRE(read_file(path) == text({1, 2, 3}));
  lines.write(line(4));
  REQUIRE(read_file(path) == text({1, 2, 3, 4}));
}

TEST_CASE("a removed folder is counted and tried again with each line", "[metrics_log]") {
  const test::TemporaryFolder folder;
  const fs::path sub = folder.path() / "sub", path = sub / "m.jsonl";
  make_directories(sub);
  JsonLines lines(path, -1);
  fs::remove_all(sub);
  lines.write(line(1));
  lines.write(line(2));
  REQUIRE(lines.num_failures() == 2);
  make_directories(sub);
  lines.write(line(3));
  REQUIRE(lines.num_failures() == 2);
  REQUIRE(read_file(path) == text({3}));
}

TEST_CASE("a file that cannot be started does not throw", "[metrics_log]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "file", "");
  JsonLines below_file(folder.path() / "file" / "m.jsonl", 5);
  REQUIRE(below_file.num_failures() == 1);
  make_directories(folder.path() / "m.jsonl");
  JsonLines folder_itself(folder.path() / "m.jsonl", 5);
  folder_itself.write(line(6));
  REQUIRE(folder_itself.num_failures() == 2);
}

TEST_CASE("a line that fits only in part leaves whole lines behind", "[metrics_log]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "m.jsonl";
  JsonLines lines(path, -1);
  lines.write(line(1));
  {
    const test::FileSizeLimit limit(read_file(path).size() + 5);
    lines.write(line(2));
    REQUIRE(lines.num_failures() == 1);
  }
  lines.write(line(3));
  REQUIRE(read_file(path) == text({1, 3}));
}

TEST_CASE("figures that are not finite and texts that are not UTF-8 do not throw",
          "[metrics_log]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "m.jsonl";
  JsonLines lines(path, -1);
  lines.write({{"step", 1}, {"loss", std::numeric_limits<double>::quiet_NaN()}, {"t", "\xff"}});
  const auto json = nlohmann::json::parse(read_file(path));
  REQUIRE(json["loss"].is_null());
}
