// SPDX-License-Identifier: Apache-2.0
// Validation periods with data that are bad, lost or constant: what is said, and what is kept.
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"
#include "tests/support/wave_store.h"

using namespace aifs;
using test::WaveStore;

namespace {

constexpr const char* kDue = "--set train.validation.every_steps=2 --set checkpoint.at_end=false ";

struct Result {
  int exit_code = -1;
  std::string text;
  std::vector<nlohmann::json> lines;  // of validation.jsonl
  bool has_step_2 = false;
};

Result run_on(const WaveStore& spec, const std::string& more, const std::string& launcher = "") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "s.zarr", run = folder.path() / "run";
  test::write_wave_store(spec, store);
  const auto done =
      test::run_command(launcher + test::train_command(run, test::wave_options(store) + more));
  Result result{done.exit_code,
                done.out + done.err,
                {},
                fs::exists(run / "checkpoints/step-00000002/COMPLETE")};
  std::istringstream lines(
      fs::exists(run / "validation.jsonl") ? read_file(run / "validation.jsonl") : std::string());
  for (std::string line; std::getline(lines, line);)
    result.lines.push_back(nlohmann::json::parse(line));
  return result;
}

WaveStore with_bad(double value) {
  WaveStore spec;
  spec.bad_variable = "q";
  spec.bad_date = 12;  // 2020-01-04
  spec.bad_value = value;
  return spec;
}

}  // namespace

TEST_CASE("infinity or a fill value in the validation period is named, and training goes on",
          "[validation_data]") {
  for (const double value : {9.9692099683868690e+36, static_cast<double>(INFINITY)}) {
    const Result result = run_on(with_bad(value), kDue);
    INFO(result.text);
    REQUIRE(result.exit_code == 0);
    REQUIRE(result.lines.size() == 2);
    for (const auto& line : result.lines)
      REQUIRE_THAT(line["failure"].get<std::string>(),
                   ContainsSubstring("q is ") && ContainsSubstring("on 2020-01-04T00:00:00"));
    REQUIRE_THAT(result.text, ContainsSubstring("2 validations of this run failed"));
  }
}

TEST_CASE("a failed validation that is to stop the run costs no step, on one rank or two",
          "[validation_data]") {
  const std::string stop =
      concat(kDue, "--set train.validation.on_failure=stop ", "--set parallel.timeout_s=30 ");
  std::vector<std::string> launchers{""};
#ifdef AIFS_HAVE_MPI
  launchers.push_back(test::mpirun(2));
#endif
  for (const std::string& launcher : launchers) {
    const Result result = run_on(with_bad(INFINITY), stop, launcher);
    INFO(result.text);
    REQUIRE(result.exit_code == 3);
    REQUIRE(result.has_step_2);  // though none was due: checkpoint.every_steps is 0
    REQUIRE(result.lines.size() == 1);
  }
}

TEST_CASE("what the dataset calls constant is left out of the mean ratio, and named",
          "[validation_data]") {
  WaveStore spec;
  const std::string prognostic =
      concat(kDue, "--set data.forcing=[] --set 'data.normalizer={\"default\": \"mean-std\"}' ");
  const auto constant = [](const Result& result) {
    return result.lines.at(0)["lead_times"]["6h"].value("constant", nlohmann::json::array());
  };
  REQUIRE(constant(run_on(spec, prognostic)) == nlohmann::json::array({"lsm"}));
  spec.constant_fields = R"(["z", "lsm"])";  // z moves, but the store says it does not
  const Result result = run_on(spec, prognostic);
  REQUIRE(constant(result) == nlohmann::json::array({"z", "lsm"}));
  REQUIRE_THAT(result.text, ContainsSubstring("'z', 'lsm' did not change"));
}
