// SPDX-License-Identifier: Apache-2.0
#include "train/output/part_timer.h"

#include <sstream>
#include <thread>

#include "tests/support/catch.h"

using namespace aifs;
using train::Part;
using train::PartTimer;

namespace {

void spend(PartTimer& timer, Part part, int milliseconds) {
  const PartTimer::Scope scope(timer, part);
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace

TEST_CASE("a scope adds its time to its part only", "[part_timer]") {
  PartTimer timer;
  spend(timer, Part::kForward, 20);
  spend(timer, Part::kForward, 20);
  REQUIRE(timer.seconds(Part::kForward) >= 0.04);
  for (const Part part : {Part::kData, Part::kBackward, Part::kOptimizer, Part::kValidation}) {
    REQUIRE(timer.seconds(part) == 0.0);
  }
}

TEST_CASE("the table has one row per part, and shares of the whole", "[part_timer]") {
  PartTimer timer;
  spend(timer, Part::kData, 10);
  spend(timer, Part::kCheckpoint, 30);
  std::istringstream text(timer.table(10));
  std::string line;
  double share_sum = 0.0;
  int rows = -1;  // the first line is the heading
  for (; std::getline(text, line); ++rows) {
    if (line.back() == '%') share_sum += std::stod(line.substr(line.size() - 7));
  }
  REQUIRE(rows == static_cast<int>(Part::kCount));
  REQUIRE(share_sum == Approx(100.0).margin(0.3));
}

TEST_CASE("a table of no steps and no time is still a table", "[part_timer]") {
  const std::string table = PartTimer().table(0);
  REQUIRE(table.find("nan") == std::string::npos);
  REQUIRE(table.find("inf") == std::string::npos);
}
