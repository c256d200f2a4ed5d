// SPDX-License-Identifier: Apache-2.0
// Runs alone, and under mpirun with a card for every rank.
#include <ATen/ATen.h>

#include "app/run/device.h"
#include "core/check.h"
#include "parallel/launch/runtime.h"
#include "tests/parallel/communicator_laws.h"
#include "tests/support/catch.h"
#include "tests/support/gpu.h"

using namespace aifs;

TEST_CASE("NCCL ranks obey the laws of communicators, for GPU and CPU tensors", "[parallel][gpu]") {
  static parallel::Runtime runtime(120.0);
  const at::Device card = app::choose_device(app::DeviceChoice::kCuda, runtime.local_rank());
  runtime.use_nccl();
  for (const at::Device& device : {card, at::Device(at::kCPU)}) {
    for (const auto& [name, law] : test::communicator_laws(device)) {
      if (runtime.size() == 1 && name == "point to point passes round a ring") continue;
      INFO(name << ", rank " << runtime.rank() << " of " << runtime.size());
      REQUIRE_NOTHROW(law(runtime.world()));
    }
  }
}
