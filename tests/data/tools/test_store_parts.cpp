// SPDX-License-Identifier: Apache-2.0
#include "data/tools/store_parts.h"

#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using data::StoreDescription;

TEST_CASE("attributes name the dates, variables and units of a dataset", "[store_parts]") {
  const zarr::ArraySettings fields{.shape = {2, 2, 1, 6}, .chunks = {1, 2, 1, 6}};
  const zarr::Json json =
      data::store_attributes({.attribution = "a",
                              .description = "d",
                              .licence = "l",
                              .variables = {"t", "q"},
                              .units = {"K", ""},
                              .dates_s = {parse_date("2020-01-01"), parse_date("2020-01-01T12")},
                              .frequency_s = 43200,
                              .cells = 6,
                              .field_shape = {2, 3}},
                             fields);
  REQUIRE(json["start_date"] == "2020-01-01T00:00:00");
  REQUIRE(json["end_date"] == "2020-01-01T12:00:00");
  REQUIRE(json["frequency"] == "12h");
  REQUIRE(json["variables_metadata"]["t"]["units"] == "K");
  REQUIRE(json["variables_metadata"]["q"].empty());
  REQUIRE(json["shape"] == zarr::Json({2, 2, 1, 6}));
  REQUIRE(json["field_shape"] == zarr::Json({2, 3}));
  REQUIRE(json["allow_nans"] == false);
  REQUIRE(json["resolution"].is_null());
}
