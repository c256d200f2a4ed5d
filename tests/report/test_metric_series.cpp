// SPDX-License-Identifier: Apache-2.0
#include "report/metric_series.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::report;

namespace {

Metrics metrics_of(const std::string& text, size_t most_points = 800) {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "metrics.jsonl", text);
  return read_metrics(folder.path() / "metrics.jsonl", most_points);
}

}  // namespace

TEST_CASE("a short run keeps every line", "[metric_series]") {
  const Metrics m = metrics_of(
      "{\"step\":1,\"loss\":4.0,\"step_s\":2.0,\"data_wait_s\":0.5,\"samples\":8}\n"
      "{\"step\":2,\"loss\":2.0,\"step_s\":1.0,\"data_wait_s\":0.0,\"samples\":8,\"skipped\":true}"
      "\n");
  CHECK(m.num_lines == 2);
  CHECK(m.num_damaged == 0);
  CHECK(m.num_skipped == 1);
  CHECK(m.last_step == 2);
  CHECK(m.loss == 3.0);
  CHECK(m.steps_s == 3.0);
  CHECK(m.waiting_s == 0.5);
  CHECK(m.samples == 16.0);
  CHECK(m.series.at("loss").step == std::vector<double>{1, 2});
  CHECK(m.series.at("loss").mean == std::vector<double>{4, 2});
  CHECK(m.series.at("loss").low == m.series.at("loss").high);
  CHECK(m.series.at("samples_per_s").mean == std::vector<double>{4, 8});
  CHECK(m.series.at("data_wait_share").mean == std::vector<double>{0.25, 0.0});
  CHECK(m.series.at("hours").mean.back() == Approx(3.0 / 3600.0));
}

TEST_CASE("rates that some lines have are curves, too", "[metric_series]") {
  const Metrics m = metrics_of(
      R"({"step":1,"loss":4.0,"step_s":2.0,"samples":8})"
      "\n"
      R"({"step":2,"step_s":2.0,"samples":8,"rates":{"samples_per_s":99,"goodput":0.5,"mfu":"x"}})"
      "\n"
      R"({"step":3,"rates":[1]})"
      "\n");
  CHECK(m.series.at("goodput").step == std::vector<double>{2});
  CHECK(m.series.at("goodput").mean == std::vector<double>{0.5});
  CHECK(m.series.at("samples_per_s").mean == std::vector<double>{4, 4});
  CHECK(m.series.count("mfu") == 0);
}

TEST_CASE("long runs are thinned, and peaks stay", "[metric_series]") {
  std::string text;
  constexpr int kLines = 200000, kPeak = 123456, kTrough = 77777;
  for (int step = 1; step <= kLines; ++step) {
    const double loss = step == kPeak ? 1e6 : step == kTrough ? 1e-6 : 1.0;
    text += concat("{\"step\":", step, ",\"loss\":", loss, "}\n");
  }
  const Series loss = metrics_of(text, 800).series.at("loss");
  CHECK(loss.step.size() <= 800);
  CHECK(loss.step.back() == kLines);
  CHECK(*std::max_element(loss.high.begin(), loss.high.end()) == 1e6);
  CHECK(*std::min_element(loss.low.begin(), loss.low.end()) == 1e-6);
  const auto peak = std::max_element(loss.high.begin(), loss.high.end()) - loss.high.begin();
  CHECK(std::abs(loss.step[static_cast<size_t>(peak)] - kPeak) <= 250);
  CHECK(loss.mean[static_cast<size_t>(peak)] == Approx((249.0 + 1e6) / 250.0));
}

TEST_CASE("what is cut or no number is counted, and leaves a gap", "[metric_series]") {
  const Metrics m = metrics_of(
      "{\"step\":1,\"loss\":null}\nnonsense\n[1]\n{\"loss\":3}\n{\"step\":2,\"loss\":5}\n"
      "{\"step\":3,\"lo");
  CHECK(m.num_lines == 2);
  CHECK(m.num_damaged == 4);
  const Series& loss = m.series.at("loss");
  CHECK(std::isnan(loss.mean[0]));
  CHECK(loss.mean[1] == 5.0);
  CHECK(std::isnan(m.loss));  // a mean over what is no number
}

TEST_CASE("a file without a step says that there are no metrics yet", "[metric_series]") {
  CHECK_THROWS_WITH(metrics_of(""), ContainsSubstring("no metrics yet"));
  CHECK_THROWS_WITH(metrics_of("{\"st"), ContainsSubstring("no metrics yet"));
}
