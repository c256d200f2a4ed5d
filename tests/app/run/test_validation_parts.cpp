// SPDX-License-Identifier: Apache-2.0
#include "app/run/validation_parts.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

data::DatasetInfo cells_of_a_meridian() {
  data::DatasetInfo info;
  info.name = "meridian";
  info.latitudes_deg = {80, 40, 0, -40, -80};
  info.longitudes_deg = {10, 10, 10, 10, 10};
  return info;
}

std::string refused(std::vector<std::string> regions, bool may_lack = false) {
  train::ValidationOptions options;
  options.regions = std::move(regions);
  try {
    app::validation_regions(options, cells_of_a_meridian(), may_lack);
  } catch (const ConfigError& error) {
    return concat(error.what(), " | ", error.hint());
  }
  return "taken";
}

}  // namespace

TEST_CASE("regions are masks of the cells inside", "[validation_parts]") {
  train::ValidationOptions options;
  options.regions = {"nh", "tropics", "box=50/0/-50/20"};
  const auto regions = app::validation_regions(options, cells_of_a_meridian(), false);
  REQUIRE(regions.size() == 3);
  REQUIRE(regions[0].name == "nh");
  REQUIRE(regions[2].name == "box");
  const auto is = [](const at::Tensor& cells, std::vector<int64_t> wanted) {
    return at::equal(cells.to(at::kLong), at::tensor(wanted));
  };
  REQUIRE(is(regions[0].cells, {1, 1, 0, 0, 0}));
  REQUIRE(is(regions[1].cells, {0, 0, 1, 0, 0}));
  REQUIRE(is(regions[2].cells, {0, 1, 1, 1, 0}));
}

TEST_CASE("regions that cannot be scored are refused by their place in the list",
          "[validation_parts]") {
  REQUIRE(refused({"nh", "sh"}) == "taken");
  REQUIRE_THAT(refused({"nh", "hn"}), ContainsSubstring("'train.validation.regions.1'") &&
                                          ContainsSubstring("nearest: 'nh'"));
  REQUIRE_THAT(refused({"nh", "nh"}), ContainsSubstring("two regions 'nh'"));
  REQUIRE_THAT(refused({"global"}), ContainsSubstring("train.validation.regions.0"));
  REQUIRE_THAT(refused({"sea=1/100/-1/120"}), ContainsSubstring("no cell of 'meridian'"));
  REQUIRE(refused({"sea=1/100/-1/120"}, /*may_lack=*/true) == "taken");
}
