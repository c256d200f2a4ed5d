// SPDX-License-Identifier: Apache-2.0
// Runs the commands of docs/tutorial.md in their order, in an empty folder. The dataset is a small
// one, so its dates take the place of those of the page, and so does a short configuration.
#include <sstream>
#include <vector>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

constexpr const char* kShort = R"({
  "run": {"dir": "runs/speedy", "seed": 1, "threads": 1, "device": "cpu"},
  "data": {
    "dataset": {"dataset": "${AIFS_SPEEDY}", "drop": ["sst"]},
    "training": {"end": "2020-01-02T06"},
    "validation": {"start": "2020-01-02T18"},
    "forcing": ["cos_latitude", "cos_longitude", "sin_latitude", "sin_longitude",
                "cos_julian_day", "cos_local_time", "sin_julian_day", "sin_local_time",
                "insolation", "lsm", "z"],
    "diagnostic": ["tp"],
    "timestep": "6h"
  },
  "graph": {"hidden": {"refinement": 1}, "area_weight": {"kind": "cosine_latitude"}},
  "model": {"channels": 8, "layers": 1},
  "train": {"max_steps": 4, "validation": {"every_epochs": 1, "lead_times": ["6h"]}}
})";

// The lines of console blocks that begin with "$ ".
std::vector<std::string> commands_of(const fs::path& page) {
  std::vector<std::string> commands;
  std::istringstream lines(read_file(page));
  bool is_console = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) is_console = line == "```console";
    if (is_console && line.starts_with("$ ")) commands.push_back(line.substr(2));
  }
  return commands;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// A command of the page for the small dataset.
std::string in_short(std::string command) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"--first 1983-02-21T06 --last 1983-02-26 --every 1d --lead-time 3d",
            "--first 2020-01-03T06 --last 2020-01-03T12 --every 6h --lead-time 12h"},
           {"speedy.zarr PATH=build/release/bin",
            concat("base.zarr PATH='", test::program("aifs-train").parent_path().string(), "'")},
           {"z_500,t_850,u_250,tp,msl", "z_500,t_850,u_500,tp,msl"}})
    command = replaced(command, from, to);
  return command;
}

}  // namespace

TEST_CASE("every command of the tutorial works, one after the other", "[tutorial]") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> commands = commands_of(test::source_folder() / "docs/tutorial.md");
  REQUIRE(commands.size() == 8);
  make_directories(folder.path() / "configs");
  write_file_atomic(folder.path() / "configs/speedy.json", kShort);
  std::string script = concat("set -e\ncd '", folder.path().string(), "'\ntar -xf '",
                              test::fixture("datasets/variants.tar").string(), "' base.zarr\n");
  for (const std::string& command : commands) {
    const std::string own = in_short(command);
    CHECK(own.find("1983") == std::string::npos);
    script += own + "\n";
  }
  write_file_atomic(folder.path() / "tutorial.sh", script);
  const auto result =
      test::run_command(concat("sh '", (folder.path() / "tutorial.sh").string(), "'"));
  INFO(script);
  INFO(result.out);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("sound"));
  CHECK_THAT(result.out, ContainsSubstring("z_500"));
  const std::string page = read_file(folder.path() / "report.html");
  for (const char* word : {"\"name\":\"speedy\"", "\"name\":\"u_500\"", "\"skill\"", "\"rmse\""})
    CHECK_THAT(page, ContainsSubstring(word));
}
