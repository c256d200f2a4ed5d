// SPDX-License-Identifier: Apache-2.0
#include "report/run_folder.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::report;

namespace {

class Folder {
 public:
  void write(const std::string& file, const std::string& text) const {
    const fs::path path = folder_.path() / file;
    make_directories(path.parent_path());
    write_file_atomic(path, text);
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

constexpr const char* kMetrics = "{\"step\":1,\"loss\":4.0}\n";

}  // namespace

TEST_CASE("a run folder gives metrics, validations, log and the newest configuration",
          "[run_folder]") {
  const Folder folder;
  folder.write("metrics.jsonl", kMetrics);
  folder.write("validation.jsonl", "{\"step\":1,\"loss\":2.0}\n{\"step\":2,\"lo");
  folder.write("checkpoints/step-00000001/manifest.json", R"({"step":1,"config":{"a":1}})");
  folder.write("checkpoints/step-00000002/manifest.json", R"({"step":2,"config":{"a":2}})");
  RunFolder run = read_run_folder(folder.path());
  CHECK(run.metrics.num_lines == 1);
  REQUIRE(run.validations.size() == 1);
  CHECK(run.manifest["config"]["a"] == 2);
  REQUIRE(run.remarks.size() == 1);
  CHECK_THAT(run.remarks[0], ContainsSubstring("1 line of validation.jsonl"));

  folder.write("checkpoints/latest", "step-00000001\n");
  CHECK(read_run_folder(folder.path()).manifest["step"] == 1);
  folder.write("checkpoints/latest", "step-/../../other\n");  // leads nowhere
  CHECK(read_run_folder(folder.path()).manifest["step"] == 2);
}

TEST_CASE("a run without a checkpoint, or with a damaged one, is shown without configuration",
          "[run_folder]") {
  const Folder folder;
  folder.write("metrics.jsonl", kMetrics);
  RunFolder run = read_run_folder(folder.path());
  CHECK(run.manifest.is_null());
  REQUIRE_FALSE(run.remarks.empty());
  CHECK_THAT(run.remarks[0], ContainsSubstring("no configuration"));

  folder.write("checkpoints/step-00000001/manifest.json", std::string(100000, '['));
  run = read_run_folder(folder.path());
  CHECK(run.manifest.is_null());
  CHECK_THAT(run.remarks[0], ContainsSubstring("step-00000001 is damaged"));

  folder.write("config.json", R"({"run":{"seed":3}})");  // of an imported model
  CHECK(read_run_folder(folder.path()).manifest["config"]["run"]["seed"] == 3);
}

TEST_CASE("what is no run folder is named", "[run_folder]") {
  const Folder folder;
  CHECK_THROWS_WITH(read_run_folder(folder.path() / "none"),
                    ContainsSubstring("none' is no folder"));
  CHECK_THROWS_WITH(read_run_folder(folder.path()), ContainsSubstring("no metrics.jsonl"));
  folder.write("metrics.jsonl", "");
  CHECK_THROWS_WITH(read_run_folder(folder.path()), ContainsSubstring("no metrics yet"));
}
