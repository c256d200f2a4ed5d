// SPDX-License-Identifier: Apache-2.0
#include "bench/roofline.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "bench/step.h"
#include "core/work_log.h"
#include "tests/bench/small_case.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::bench;

namespace {

constexpr DeviceLimits kLimits{.bytes_per_s = 1e9, .flop_per_s = 1e12};

const RooflineRow& row_of(const Roofline& roofline, std::string_view kind) {
  for (const RooflineRow& row : roofline.rows) {
    if (row.kind == kind) return row;
  }
  throw Error(concat("no row '", kind, "'"));
}

Roofline counted(const std::function<void()>& work) {
  return roofline(calls_of(work), kLimits);
}

}  // namespace

TEST_CASE("the least time of a call is that of its bytes or of its operations", "[roofline]") {
  const Roofline result = counted([] {
    WorkLog::add({.kind = "copy", .bytes = 2e9, .operations = 1e12});
    std::thread([] { WorkLog::add({.kind = "copy", .bytes = 1e9, .operations = 5e12}); }).join();
    WorkLog::add({.kind = "other", .bytes = 1e9});
  });
  REQUIRE(result.rows.size() == 2);
  REQUIRE(result.rows[0].kind == "copy");
  REQUIRE(result.rows[0].calls == 2);
  REQUIRE(result.rows[0].seconds == Approx(2.0 + 5.0));  // not the larger of both sums
  REQUIRE(result.rows[1].seconds == Approx(1.0));
  REQUIRE(result.seconds() == Approx(8.0));
  REQUIRE(result.to_json()["ms"].get<double>() == Approx(8e3));
  WorkLog::add({.kind = "nobody asks"});
  REQUIRE(counted([] {}).rows.empty());
}

TEST_CASE("products of the library are counted by their shapes", "[roofline]") {
  const at::Tensor a = at::ones({10, 30}), b = at::ones({30, 20}), sum = at::ones({20});
  const at::Tensor pairs = at::ones({3, 4, 5}), others = at::ones({3, 5, 6});
  const Roofline result = counted([&] {
    at::mm(a.t(), a);
    at::mm(a, b);
    at::addmm(sum, a, b);
    at::bmm(pairs, others);
    a + 1.0;
  });
  // 10 x 30 x 20 has more depth than rows and columns, as gradients of weights have.
  const RooflineRow& deep = row_of(result, "weight gradients (library)");
  REQUIRE(deep.calls == 2);
  REQUIRE(deep.operations == 2 * 2.0 * 10 * 30 * 20);
  REQUIRE(deep.bytes == 4.0 * (2 * (300 + 600 + 200) + 20));
  const RooflineRow& rest = row_of(result, "products (library)");
  REQUIRE(rest.calls == 2);
  REQUIRE(rest.operations == 2.0 * 30 * 10 * 30 + 2.0 * 3 * 4 * 5 * 6);
  REQUIRE(rest.bytes == 4.0 * (2 * 300 + 900) + 4.0 * (60 + 90 + 72));
}

TEST_CASE("a step has the products of its network, forward and twice as many backward",
          "[roofline]") {
  const parallel::ProcessMesh mesh;
  const auto tflop = [&](const char* kernels, bool forward_only) {
    const auto json = time_steps(
        test::small_case("gnn-512-n320-tri6-bf16", {concat("model.kernels=", kernels)}),
        {.mesh = mesh, .warm_up = 1, .steps = 2, .forward_only = forward_only, .roofline = true});
    INFO(json.dump());
    REQUIRE(json["roofline"]["of_step"].get<double>() > 0.0);
    const double least = json["roofline"]["tflop"].get<double>();
    // Inputs have no gradients, and first products of edges are made at nodes.
    if (!forward_only) REQUIRE(least == Approx(json["tflop_executed"].get<double>()).epsilon(0.02));
    return least;
  };
  for (const char* kernels : {"reference", "fused"}) {
    INFO(kernels);
    const double whole = tflop(kernels, false);
    REQUIRE(tflop(kernels, true) == Approx(whole / 3.0).epsilon(0.05));
  }
}
