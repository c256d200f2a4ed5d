// SPDX-License-Identifier: Apache-2.0
// What holds for every loss of the table.
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "tests/support/catch.h"
#include "train/loss/loss_options.h"

using namespace aifs;
using namespace aifs::train;

TEST_CASE("every loss has a name of its own, and mean squared errors are the default",
          "[loss_kinds]") {
  std::set<std::string> names;
  for (const auto& kind : LossKind::kinds())
    REQUIRE(names.insert(kind.name).second);
  REQUIRE(names.size() >= 16);
  REQUIRE(LossTermOptions().kind.name() == "mse");
}

TEST_CASE("the options of every loss read back as they were written", "[loss_kinds]") {
  for (const auto& kind : LossKind::kinds()) {
    INFO(kind.name);
    LossTermOptions term;
    term.kind.choose(kind.name);
    const config::Json written = config::write_object(config::fields_of(term));
    REQUIRE(written["kind"] == kind.name);
    LossTermOptions again;
    config::read_object(config::fields_of(again), written, "loss", {});
    REQUIRE(config::write_object(config::fields_of(again)) == written);
  }
}

TEST_CASE("losses of waves are those that have a transform", "[loss_kinds]") {
  for (const auto& kind : LossKind::kinds()) {
    INFO(kind.name);
    LossTermOptions term;
    term.kind.choose(kind.name);
    const config::Json written = config::write_object(config::fields_of(term));
    REQUIRE(term.kind->is_of_waves() == written.contains("transform"));
  }
}
