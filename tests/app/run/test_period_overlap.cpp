// SPDX-License-Identifier: Apache-2.0
#include "app/run/period_overlap.h"

#include "core/time.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

const train::Window kWindow{2, 1, 1};  // two times in, one out

// Every six hours from `first` on.
data::DatasetInfo dates(const std::string& first, int64_t count) {
  data::DatasetInfo info;
  info.frequency_s = 6 * 3600;
  for (int64_t row = 0; row < count; ++row)
    info.dates_s.push_back(parse_date(first) + row * info.frequency_s);
  return info;
}

}  // namespace

TEST_CASE("periods that follow each other, or meet in their ends, do not overlap",
          "[period_overlap]") {
  const data::DatasetInfo training = dates("2020-01-01", 8);  // to 2020-01-02T18
  REQUIRE(app::overlap_warning(training, dates("2020-01-03", 8), kWindow).empty());
  REQUIRE(app::overlap_warning(training, dates("2020-01-02T18:00:00", 8), kWindow).empty());
  REQUIRE(app::overlap_warning(dates("2020-01-03", 8), training, kWindow).empty());
}

TEST_CASE("shared dates and the samples that are seen in training are counted",
          "[period_overlap]") {
  const data::DatasetInfo training = dates("2020-01-01", 8);
  // Rows 4 to 7 of training are rows 0 to 3 here; the truths at rows 2 and 3 are trained on.
  REQUIRE(app::overlap_warning(training, dates("2020-01-02", 6), kWindow) ==
          "the training and validation periods share 4 dates, 2020-01-02T00:00:00 to "
          "2020-01-02T18:00:00: 2 of 4 validation samples have a truth that is trained on; see "
          "data.training and data.validation");
  // Gives both the same data: six samples of eight dates.
  REQUIRE_THAT(app::overlap_warning(training, training, kWindow),
               ContainsSubstring("share 8 dates") && ContainsSubstring("6 of 6"));
  // Missing rows are neither trained on nor validated: rows 2 to 5 start or end no sample.
  data::DatasetInfo holes = training;
  holes.missing_rows = {4};
  REQUIRE_THAT(app::overlap_warning(holes, training, kWindow), ContainsSubstring("3 of 6"));
  // Steps of two rows: inputs at 0 and 2, truths from row 4 on.
  REQUIRE_THAT(app::overlap_warning(training, training, {2, 1, 2}), ContainsSubstring("4 of 4"));
}

TEST_CASE("a run warns where its periods overlap", "[period_overlap]") {
  const test::TemporaryFolder folder;
  const auto warns = [&](const std::string& more) {
    const auto result = test::run_train(folder.path() / "r", "--check-config " + more);
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 0);
    return (result.out + result.err).find("validation samples have a truth") != std::string::npos;
  };
  REQUIRE_FALSE(warns(""));
  REQUIRE(warns("--set data.validation.start=2020-01-04 --set data.validation.end=2020-01-08"));
  const auto result =
      test::run_train(folder.path() / "r",
                      "--set train.max_steps=1 --set data.validation.start=2020-01-04 --set "
                      "data.validation.end=2020-01-08");
  REQUIRE_THAT(result.err, ContainsSubstring("validation samples have a truth"));
}
