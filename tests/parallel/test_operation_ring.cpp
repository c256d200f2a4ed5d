// SPDX-License-Identifier: Apache-2.0
#include "parallel/operation_ring.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace aifs::parallel;

TEST_CASE("the last operations are kept, numbered by group and by partner", "[operation_ring]") {
  OperationRing ring(3);
  const int64_t all = ring.add_group(-1, 0, 4, 2);
  const int64_t pair = ring.add_group(all, 1, 2, 0), other = ring.add_group(all, 0, 2, 1);
  CHECK(ring.groups()[static_cast<size_t>(pair)].name == "all.0.1");
  CHECK(ring.groups()[static_cast<size_t>(other)].name == "all.1.0");
  ring.set_place("step 1");
  const int64_t first = ring.begin(all, "barrier", 0);
  ring.end(first);
  ring.end(ring.begin(all, "all-reduce", 8));
  ring.set_place("step 2");
  ring.end(ring.begin(pair, "send", 16, 1));
  const int64_t last = ring.begin(pair, "receive", 16, 1);
  const std::vector<RingEntry> entries = ring.entries();
  REQUIRE(entries.size() == 3);
  CHECK(std::string(entries[0].operation) == "all-reduce");
  CHECK(entries[0].number == 2);
  CHECK(entries[0].place == "step 1");
  CHECK(entries[0].ended_s >= entries[0].begun_s);
  CHECK(entries[1].number == 1);
  CHECK(entries[1].peer == 1);
  CHECK(entries[2].number == 1);  // of messages that were received
  CHECK(entries[2].ended_s == 0.0);
  CHECK(entries[2].place == "step 2");
  ring.end(first);  // overwritten long ago: no other one ends by it
  CHECK(ring.entries()[2].ended_s == 0.0);
  ring.end(last);
  CHECK(ring.entries()[2].ended_s > 0.0);
  CHECK(ring.groups()[0].collectives == 2);
  CHECK(ring.groups()[1].sent == std::vector<int64_t>{0, 1});
  CHECK(ring.seconds_since_last() < 60.0);
}

TEST_CASE("a scope without a ring does nothing", "[operation_ring]") {
  OperationRing ring;
  const int64_t all = ring.add_group(-1, 0, 1, 0);
  { const OperationRing::Scope none(nullptr, all, "barrier", 0); }
  CHECK(ring.entries().empty());
  {
    const OperationRing::Scope one(&ring, all, "barrier", 0);
    CHECK(ring.entries().front().ended_s == 0.0);
  }
  CHECK(ring.entries().front().ended_s > 0.0);
}

TEST_CASE("what a rank leaves says who, why and what", "[operation_ring]") {
  OperationRing ring;
  const int64_t all = ring.add_group(-1, 0, 2, 1);
  ring.set_place("step 7");
  ring.end(ring.begin(all, "send", 4, 0));
  ring.begin(all, "all-gather", 12);
  CHECK_FALSE(nlohmann::json::parse(ring.to_json(1, "", "")).contains("stood_still"));
  ring.note_stop(5.0);
  const auto json = nlohmann::json::parse(ring.to_json(1, "rank 1 on n2", "has waited"));
  CHECK(json["rank"] == 1);
  CHECK(json["who"] == "rank 1 on n2");
  CHECK(json["reason"] == "has waited");
  CHECK(json["groups"][0]["collectives"] == 1);
  CHECK(json["groups"][0]["sent"] == nlohmann::json{1, 0});
  REQUIRE(json["operations"].size() == 2);
  CHECK(json["operations"][0].contains("ended_s"));
  CHECK_FALSE(json["operations"][1].contains("ended_s"));
  CHECK(json["operations"][1]["place"] == "step 7");
  CHECK(json["operations"][1]["bytes"] == 12);
  CHECK(json["stood_still"]["to_s"].get<double>() - json["stood_still"]["from_s"].get<double>() ==
        Approx(5.0).margin(0.01));
}
