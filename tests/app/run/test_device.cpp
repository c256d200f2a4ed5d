// SPDX-License-Identifier: Apache-2.0
#include "app/run/device.h"

#include <ATen/ATen.h>

#include <cstdlib>

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
  }
}

TEST_CASE("a process takes the GPU of its number, or the only one that it sees", "[device]") {
  for (const int64_t local_rank : {0, 1, 7})
    REQUIRE(own_gpu(1, local_rank) == 0);
  for (const int64_t local_rank : {0, 1, 7})
    REQUIRE(own_gpu(8, local_rank) == local_rank);
}

TEST_CASE("fewer GPUs than processes are told with what hides them", "[device]") {
  const char* before = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string saved = before ? before : "";
  ::setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
  REQUIRE_THROWS_WITH(own_gpu(2, 2),
                      ContainsSubstring("'run.device': process 2 of this host (from 0) has no GPU: "
                                        "it sees 2, CUDA_VISIBLE_DEVICES is '2,3'"));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  REQUIRE_THROWS_WITH(own_gpu(2, 2), ContainsSubstring("CUDA_VISIBLE_DEVICES is not set"));
  if (before) ::setenv("CUDA_VISIBLE_DEVICES", saved.c_str(), 1);
}

TEST_CASE("all ranks have a GPU each, or none has", "[device]") {
  const std::string a = "0000:1b:00.0", b = "0000:43:00.0";
  REQUIRE_NOTHROW(check_gpus({"x"}, {a}));
  REQUIRE_NOTHROW(check_gpus({"x", "x", "y", "y"}, {a, b, a, b}));
  REQUIRE_NOTHROW(check_gpus({"x", "x"}, {"", ""}));
  REQUIRE_THROWS_WITH(check_gpus({"x", "y", "x"}, {a, a, a}),
                      ContainsSubstring("ranks 0 and 2 have the same GPU, 0000:1b:00.0"));
  REQUIRE_THROWS_WITH(check_gpus({"x", "y", "y"}, {a, a, ""}),
                      ContainsSubstring("rank 0 has a GPU, rank 2 sees none"));
  REQUIRE_THROWS_WITH(check_gpus({"x", "y"}, {"", a}),
                      ContainsSubstring("rank 1 has a GPU, rank 0 sees none"));
  REQUIRE(gpu_address(at::kCPU).empty());
}

TEST_CASE("tf32 needs a GPU", "[device]") {
  REQUIRE_THROWS_AS(set_arithmetic(Precision::kTf32, at::kCPU), ConfigError);
  REQUIRE_NOTHROW(set_arithmetic(Precision::kBf16Mixed, at::kCPU));
}
