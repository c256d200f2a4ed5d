// SPDX-License-Identifier: Apache-2.0
// A short run with one forecast and its scores, for tests of `aifs-train report`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/app/program.h"

namespace aifs::test {

class ReportedRun {
 public:
  ReportedRun() {
    require(run_train(folder(),
                      "--set train.max_steps=10 --set checkpoint.every_steps=0 --set "
                      "profile.parts=true"));
    require(call(concat("forecast '", folder().string(), "' --dates 2020-02-01T06 --lead-time 12h",
                        " --out '", forecasts().string(), "'")));
    require(call(concat("verify '", forecasts().string(), "' --truth '", folder().string(),
                        "' --out '", scores().string(), "'")));
  }

  fs::path folder() const { return temporary_.path() / "run"; }
  fs::path forecasts() const { return temporary_.path() / "forecasts"; }
  fs::path scores() const { return temporary_.path() / "scores"; }
  fs::path page() const { return temporary_.path() / "report.html"; }
  fs::path profile() const { return temporary_.path() / "profile"; }

  // Options that name scores, forecasts and truth.
  std::string everything() const {
    return concat("--scores '", scores().string(), "' --forecasts '", forecasts().string(),
                  "' --truth '", folder().string(), "'");
  }
  CommandResult report(const std::string& arguments) const {
    return call(concat("report ", arguments, " --out '", page().string(), "'"));
  }

 private:
  static CommandResult call(const std::string& arguments) {
    return run_command(concat("'", program("aifs-train").string(), "' ", arguments));
  }
  static void require(const CommandResult& result) {
    AIFS_CHECK(result.exit_code == 0, result.err);
  }

  TemporaryFolder temporary_;
};

// What the scripts of a page read.
inline nlohmann::json report_of_page(const std::string& page) {
  const std::string begin = "<script id=\"report\" type=\"application/json\">";
  const size_t first = page.find(begin);
  AIFS_CHECK(first != std::string::npos, "no report in the page");
  const size_t start = first + begin.size();
  return nlohmann::json::parse(page.substr(start, page.find("</script>", start) - start));
}

}  // namespace aifs::test
