// SPDX-License-Identifier: Apache-2.0
#include "app/device.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::app;
using train::Precision;

TEST_CASE("the CPU is always there", "[device]") {
  REQUIRE(choose_device(DeviceChoice::kCpu, 3).is_cpu());
  REQUIRE(device_name(at::kCPU) == "CPU");
}

TEST_CASE("a GPU that is not there is a mistake in the configuration, never a surprise",
          "[device]") {
  const at::Device found = choose_device(DeviceChoice::kAuto, 0);
  if (found.is_cpu()) {
    REQUIRE_THROWS_AS(choose_device(DeviceChoice::kCuda, 0), ConfigError);
  } else {
    REQUIRE(choose_device(DeviceChoice::kCuda, 0) == found);
    REQUIRE_THROWS_AS(choose_device(DeviceChoice::kAuto, 1000), ConfigError);
  }
}

TEST_CASE("tf32 needs a GPU", "[device]") {
  REQUIRE_THROWS_AS(set_arithmetic(Precision::kTf32, at::kCPU), ConfigError);
  REQUIRE_NOTHROW(set_arithmetic(Precision::kBf16Mixed, at::kCPU));
}
