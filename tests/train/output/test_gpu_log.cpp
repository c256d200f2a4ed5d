// SPDX-License-Identifier: Apache-2.0
#include "train/output/gpu_log.h"

#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace aifs;
using train::GpuLog;

TEST_CASE("figures of GPUs become objects, and their faults warnings, once", "[gpu_log]") {
  REQUIRE(::dlopen(AIFS_FAKE_NVML, RTLD_NOW | RTLD_LOCAL));
  GpuLog log({});
  const auto figures = log.figures();
  REQUIRE(figures.size() == 2);
  CHECK(figures[0]["gpu"] == "0000:1b:00.0");
  CHECK(figures[0]["use"] == 0.98);
  CHECK(figures[0]["memory_gib"] == 50.0);
  CHECK(figures[1]["slowed_by"].size() == 2);
  CHECK_FALSE(figures[0].contains("clock_mhz"));
  const auto first = log.take_warnings();
  REQUIRE(first.size() == 2);
  CHECK_THAT(first[0], ContainsSubstring("0000:2b:00.0 is slowed down by heat, 91 degrees"));
  CHECK_THAT(first[1], ContainsSubstring("Xid 79 of GPU 0000:2b:00.0"));
  log.figures();
  const auto second = log.take_warnings();
  REQUIRE(second.size() == 1);
  CHECK_THAT(second[0], ContainsSubstring("memory of GPU 0000:2b:00.0 has 1 more uncorrected"));
  CHECK(log.take_warnings().empty());
}

TEST_CASE("without a library or such a GPU there is nothing", "[gpu_log]") {
  GpuLog none({"0000:77:00.0"});
  CHECK(none.figures().is_null());
  CHECK(none.take_warnings().empty());
}
