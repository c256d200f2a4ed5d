// SPDX-License-Identifier: Apache-2.0
// A store as MLflow itself reads and writes it, where Python has its package: `python3`, or the one
// that AIFS_MLFLOW_PYTHON names.
#include <cstdlib>
#include <sstream>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/skip.h"
#include "train/output/mlflow.h"

using namespace aifs;
using train::MlflowRun;
using train::MlflowWriter;

TEST_CASE("MLflow reads the store as its own", "[mlflow][package]") {
  const test::TemporaryFolder folder;
  const fs::path script = folder.path() / "read.py", run_dir = folder.path() / "a";
  make_directories(run_dir);
  const MlflowRun run{.store = folder.path() / "the store",
                      .experiment = "it's one",
                      .run_dir = run_dir,
                      .config_json = R"({"train": {"max_steps": 7}, "names": ["a"]})",
                      .program_version = "1.0"};
  {
    MlflowWriter writer(run);
    for (const int64_t step : {1, 2, 3})
      writer.add_scalar("train/loss", 1.0 / static_cast<double>(step), step);
    writer.end(MlflowWriter::Status::kFinished);
  }
  write_file_atomic(script, R"(
import sys, warnings
warnings.simplefilter("ignore")
from mlflow.tracking import MlflowClient
client = MlflowClient("file://" + sys.argv[1].replace(" ", "%20"))
[experiment] = [e for e in client.search_experiments() if e.name == "it's one"]
[run] = client.search_runs([experiment.experiment_id])
print(run.info.run_name, run.info.status, run.data.params["train.max_steps"],
      run.data.metrics["train/loss"] == 1.0 / 3.0, run.info.end_time >= run.info.start_time,
      [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "train/loss")][:2])
client.set_tag(run.info.run_id, "seen", "yes")
client.log_metric(run.info.run_id, "train/loss", 0.25, step=4)
)");
  const char* chosen = std::getenv("AIFS_MLFLOW_PYTHON");
  const std::string python =
      concat("MLFLOW_ALLOW_FILE_STORE=true '", chosen && *chosen ? chosen : "python3", "' ");
  if (test::run_command(python + "-c 'import mlflow.tracking'").exit_code != 0)
    test::skip("Python has no package mlflow; AIFS_MLFLOW_PYTHON may name one that has");
  const auto read =
      test::run_command(concat(python, "'", script.string(), "' '", run.store.string(), "'"));
  INFO(read.out << read.err);
  REQUIRE(read.exit_code == 0);
  REQUIRE_THAT(read.out, ContainsSubstring("a FINISHED 7 True True [(1, 1.0), (2, 0.5)]"));
  // The same run goes on after MLflow has written to it.
  MlflowWriter again(run, 3);
  again.end(MlflowWriter::Status::kFinished);
  std::istringstream points(read_file(again.folder() / "metrics" / "train" / "loss"));
  int64_t count = 0;
  for (std::string line; std::getline(points, line);)
    ++count;
  REQUIRE(count == 3);
}
