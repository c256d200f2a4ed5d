// SPDX-License-Identifier: Apache-2.0
// The lab's references against the operations that it times, here their halves for the CPU.
#include "bench/kernels.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::bench;
using Json = nlohmann::ordered_json;

namespace {

Json run(const std::string& pattern) {
  const KernelBenchOptions options{
      .pattern = pattern, .graphs = {"o8-tri1"}, .channels = {32}, .repetitions = 2};
  return time_kernels(options, {.bytes_per_s = 1e9, .flop_per_s = 1e9}, [](const Json&) {});
}

}  // namespace

TEST_CASE("every kernel gives what LibTorch's operators give, at every place and type", "[bench]") {
  std::set<std::string> untested;
  for (const Kernel& kernel : kernels())
    untested.insert(kernel.name);
  for (const Json& result : run("")) {
    INFO(result.dump());
    REQUIRE(result.value("within", false));
    const auto name = result["case"].get<std::string>();
    untested.erase(name.substr(0, name.find("-32-")));
    REQUIRE(result["us"].get<double>() > 0.0);
  }
  REQUIRE(untested.empty());
}

TEST_CASE("bytes and operations of a case follow from its shapes", "[bench]") {
  const Json sums = run("column-sums-32-o8-tri1-data-fp32").at(0);
  const double rows = sums["rows"].get<double>(), seconds = 1e-6 * sums["us"].get<double>();
  REQUIRE(rows == 544);  // cells of O8
  const double bytes = 4.0 * 32.0 * (rows + 1.0);
  REQUIRE(sums["gb_s"].get<double>() == Approx(1e-9 * bytes / seconds));
  REQUIRE(sums["of_limit"].get<double>() == Approx(bytes / 1e9 / seconds));
  const Json product = run("^product-gelu-32-o8-tri1-data-bf16").at(0);
  const double flops = 2.0 * rows * 32.0 * 32.0, product_s = 1e-6 * product["us"].get<double>();
  REQUIRE(product["tflop_s"].get<double>() == Approx(1e-12 * flops / product_s));
  REQUIRE(product["of_limit"].get<double>() == Approx(flops / 1e9 / product_s));
}

TEST_CASE("a name that no case has is an error, and what cannot be one", "[bench]") {
  REQUIRE_THROWS_AS(run("no-such-kernel"), ConfigError);
  REQUIRE_THROWS_AS(run("norm("), ConfigError);
}

TEST_CASE("the limits of a device are those of a copy and a product", "[bench]") {
  const DeviceLimits limits = measure_limits(c10::kCPU);
  REQUIRE(limits.bytes_per_s > 1e6);
  REQUIRE(limits.flop_per_s > 1e6);
}
