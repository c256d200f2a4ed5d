// SPDX-License-Identifier: Apache-2.0
// Checkpoints are found where users name them, and what is there instead is named.
#include "app/run/checkpoints.h"

#include "core/check.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using app::find_checkpoint;
using test::run_train;

namespace {

// A run with checkpoints of the steps 2 and 4.
void make_run(const fs::path& run) {
  const auto result = run_train(run, "--set train.max_steps=4 --set checkpoint.every_steps=2");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

void require_fault(const fs::path& given, const std::string& what, const std::string& hint) {
  INFO(given);
  try {
    find_checkpoint(given, "init.from");
    FAIL("no error");
  } catch (const DataError& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring(concat("init.from names '", given.string(), "'")));
    REQUIRE_THAT(error.what(), ContainsSubstring(what));
    REQUIRE_THAT(error.hint(), ContainsSubstring(hint));
  }
}

}  // namespace

TEST_CASE("a run folder stands for its newest sound checkpoint", "[checkpoints]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  make_run(run);
  const auto step = [&](const fs::path& given) { return find_checkpoint(given, "x").state.step; };
  REQUIRE(step(run) == 4);
  REQUIRE(step(run / "") == 4);
  REQUIRE(step(run / "checkpoints") == 4);
  REQUIRE(step(run / "checkpoints" / "step-00000002") == 2);
  fs::remove(run / "checkpoints" / "step-00000004" / "parameters.safetensors");
  REQUIRE(step(run) == 2);
  REQUIRE_THROWS_AS(step(run / "checkpoints" / "step-00000004"), DataError);

  // A new run starts from it.
  const auto result = run_train(
      folder.path() / "s", concat("--set train.max_steps=1 --set init.from='", run.string(), "'"));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  REQUIRE_THAT(result.err, ContainsSubstring("starting from the weights of") &&
                               ContainsSubstring("step-00000002"));
}

TEST_CASE("what is there instead of a checkpoint is named", "[checkpoints]") {
  const test::TemporaryFolder folder;
  const fs::path& here = folder.path();
  require_fault(here / "nowhere", "which is not there", "run folder");
  fs::create_symlink("nowhere", here / "link");
  require_fault(here / "link", "a link to 'nowhere'", "run folder");
  require_fault(here, "holds no checkpoint", "run folder");
  write_file_atomic(here / "model.ckpt", std::string("PK\x03\x04 and more"));
  require_fault(here / "model.ckpt", "a zip archive", "aifs-train import");
  write_file_atomic(here / "run.tar", std::string(257, '\0') + "ustar" + std::string(250, '\0'));
  require_fault(here / "run.tar", "a tar archive", "unpack it");
  write_file_atomic(here / "step-00000007", "some words");  // a file under a checkpoint's name
  require_fault(here / "step-00000007", "text, not a folder", "run folder");
  fs::create_directories(here / "c");
  write_file_atomic(here / "c" / "manifest.json", "{}");
  write_file_atomic(here / "c" / "parameters.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  require_fault(here / "c" / "parameters.safetensors", "not a folder", "name its folder");
  fs::create_directories(here / "exported");
  write_file_atomic(here / "exported" / "model.safetensors", "");
  require_fault(here / "exported", "holds no checkpoint", "aifs-train import");
}
