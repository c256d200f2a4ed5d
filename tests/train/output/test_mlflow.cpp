// SPDX-License-Identifier: Apache-2.0
#include "train/output/mlflow.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/log.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;
using train::MlflowRun;
using train::MlflowWriter;

namespace {

struct Place {
  test::TemporaryFolder folder;
  fs::path store = folder.path() / "the store";

  MlflowRun run(const std::string& name, const std::string& experiment = "it's one") const {
    make_directories(folder.path() / name);
    return {.store = store,
            .experiment = experiment,
            .run_dir = folder.path() / name,
            .config_json = R"({"train": {"max_steps": 7, "rollout": {}}, "names": ["a", "b"],)"
                           R"( "dir": "x y"})",
            .program_version = "1.0"};
  }
};

// The points of a metric without their times.
std::vector<std::string> points(const fs::path& run, const std::string& key) {
  std::istringstream lines(read_file(run / "metrics" / key));
  std::vector<std::string> found;
  std::string time, rest;
  while (lines >> time && std::getline(lines, rest))
    found.push_back(rest.substr(1));
  return found;
}

}  // namespace

TEST_CASE("scalars, configuration and state of a run are in its folder", "[mlflow]") {
  const Place place;
  MlflowWriter writer(place.run("a"));
  const fs::path run = writer.folder();
  writer.add_scalar("train/loss", 0.5, 1);
  writer.add_scalar("train/loss", 0.1, 2);
  writer.add_scalar("validation/../x*", std::numeric_limits<double>::quiet_NaN(), 2);
  writer.flush();
  REQUIRE(points(run, "train/loss") == std::vector<std::string>{"0.5 1", "0.1 2"});
  REQUIRE(points(run, "validation/__/x_") == std::vector<std::string>{"nan 2"});
  REQUIRE(read_file(run / "params" / "train.max_steps") == "7");
  REQUIRE(read_file(run / "params" / "names") == R"(["a","b"])");
  REQUIRE(read_file(run / "params" / "dir") == "x y");
  REQUIRE(read_file(run / "tags" / "mlflow.runName") == "a");
  REQUIRE_THAT(read_file(run / "meta.yaml"), ContainsSubstring("status: 1\n") &&
                                                 ContainsSubstring("end_time: null\n") &&
                                                 ContainsSubstring("the%20store"));
  writer.end(MlflowWriter::Status::kFinished);
  REQUIRE_THAT(read_file(run / "meta.yaml"),
               ContainsSubstring("status: 3\n") && !ContainsSubstring("null"));
  REQUIRE_THAT(read_file(run.parent_path() / "meta.yaml"), ContainsSubstring("name: 'it''s one'"));
}

TEST_CASE("a run that is left without an end has failed", "[mlflow]") {
  const Place place;
  fs::path run;
  {
    MlflowWriter writer(place.run("a"));
    run = writer.folder();
    writer.add_scalar("loss", 1.0, 1);
  }
  REQUIRE_THAT(read_file(run / "meta.yaml"), ContainsSubstring("status: 4\n"));
  REQUIRE(points(run, "loss") == std::vector<std::string>{"1.0 1"});
}

TEST_CASE("runs of one name of an experiment are in one folder, others are not", "[mlflow]") {
  const Place place;
  const MlflowWriter a(place.run("a")), b(place.run("b")), other(place.run("c", "other"));
  REQUIRE(a.folder() != b.folder());
  REQUIRE(a.folder().parent_path() == b.folder().parent_path());
  REQUIRE(a.folder().parent_path() != other.folder().parent_path());
}

TEST_CASE("a resumed run goes on with its points up to the step, another is a new one",
          "[mlflow]") {
  const Place place;
  fs::path run;
  {
    MlflowWriter writer(place.run("a"));
    run = writer.folder();
    for (const int64_t step : {1, 2, 3})
      writer.add_scalar("train/loss", 1.0, step);
  }
  REQUIRE(append_whole(run / "metrics" / "train" / "loss", "17 0.").empty());
  MlflowWriter again(place.run("a"), 2);
  REQUIRE(again.folder() == run);
  again.add_scalar("train/loss", 2.0, 3);
  again.end(MlflowWriter::Status::kKilled);
  REQUIRE(points(run, "train/loss") == std::vector<std::string>{"1.0 1", "1.0 2", "2.0 3"});
  REQUIRE_THAT(read_file(run / "meta.yaml"), ContainsSubstring("status: 5\n"));
  REQUIRE(MlflowWriter(place.run("b"), 2).folder() != run);
  REQUIRE(MlflowWriter(place.run("a")).folder() != run);
}

TEST_CASE("a store that is full or vanishes stops nothing, and a damaged record is named",
          "[mlflow]") {
  const Place place;
  MlflowWriter writer(place.run("a"));
  const fs::path run = writer.folder();
  writer.add_scalar("loss", 1.0, 1);
  writer.flush();
  {
    const test::FileSizeLimit limit(read_file(run / "metrics" / "loss").size() + 3);
    writer.add_scalar("loss", 1.0, 2);
    writer.flush();
    REQUIRE(writer.num_failures() == 1);
  }
  writer.add_scalar("loss", 1.0, 3);
  writer.flush();
  REQUIRE(points(run, "loss") == std::vector<std::string>{"1.0 1", "1.0 3"});
  fs::remove_all(place.store);
  writer.add_scalar("loss", 1.0, 4);
  writer.flush();
  REQUIRE(writer.num_failures() == 2);
  REQUIRE_FALSE(fs::exists(place.store));
  writer.end(MlflowWriter::Status::kFinished);
  REQUIRE(writer.num_failures() == 3);
  write_file_atomic(place.folder.path() / "a" / "mlflow.json", "{\"run_id\": 3}");
  REQUIRE_THROWS_WITH(MlflowWriter(place.run("a"), 2), ContainsSubstring("mlflow.json"));
  fs::remove_all(place.store);
  write_file_atomic(place.store, "a file");
  REQUIRE_THROWS_AS(MlflowWriter(place.run("a")), Error);
}
