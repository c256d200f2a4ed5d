// SPDX-License-Identifier: Apache-2.0
#include "core/nvml.h"

#include <dlfcn.h>

#include "tests/support/catch.h"

using namespace aifs;

namespace {

// The library under the name by which it is looked for, whatever the machine has.
bool has_fake() {
  static void* const fake = ::dlopen(AIFS_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
  return fake != nullptr;
}

}  // namespace

TEST_CASE("GPUs are found by address, in either spelling", "[nvml]") {
  REQUIRE(has_fake());
  const auto all = Nvml::open({});
  REQUIRE(all);
  CHECK(all->read().size() == 2);
  const auto one = Nvml::open({"0000:2b:00.0"});
  REQUIRE(one);
  REQUIRE(one->read().size() == 1);
  CHECK(one->read()[0].address == "0000:2b:00.0");
  CHECK(Nvml::open({"00000000:1B:00.0"})->read()[0].address == "0000:1b:00.0");
  CHECK_FALSE(Nvml::open({"0000:77:00.0"}));
}

TEST_CASE("what the library says is what is read, and what it lacks is missing", "[nvml]") {
  REQUIRE(has_fake());
  const auto nvml = Nvml::open({});
  const std::vector<GpuState> gpus = nvml->read();
  const GpuState &first = gpus.at(0), &second = gpus.at(1);
  CHECK(first.name == "Fake H200");
  CHECK(first.use == Approx(0.98));
  CHECK(first.memory_gib == Approx(50.0));
  CHECK(first.memory_total_gib == Approx(141.0));
  CHECK(first.power_w == Approx(640.0));
  CHECK(first.temperature_c == Approx(55.0));
  CHECK_FALSE(first.clock_mhz);
  CHECK(first.slowed_by == std::vector<std::string>{"power cap"});
  CHECK(first.ecc_uncorrected == 0);
  CHECK_FALSE(first.is_divided);
  CHECK(second.power_limit_w == Approx(500.0));
  CHECK(second.default_power_limit_w == Approx(700.0));
  CHECK(second.slowed_by == std::vector<std::string>{"power cap", "heat"});
  CHECK(second.ecc_corrected == 7);
  CHECK(second.is_divided);
  const std::vector<GpuFault> faults = nvml->new_faults();
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].address == "0000:2b:00.0");
  CHECK(faults[0].xid == 79);
  CHECK(nvml->new_faults().empty());
}
