// SPDX-License-Identifier: Apache-2.0
#include "bench/comm.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::bench;

TEST_CASE("latency and bandwidth come back out of times that are made of them", "[bench]") {
  constexpr int kRanks = 4;
  constexpr double kCall_s = 20e-6, kMessage_s = 3e-6, kBytesPerS = 5e9;
  std::vector<CommTime> times;
  for (const char* name :
       {"broadcast", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send"}) {
    for (int64_t bytes = 1 << 10; bytes <= 1 << 28; bytes *= 4) {
      times.push_back({name, bytes,
                       kCall_s + messages(name, kRanks) * kMessage_s +
                           bus_factor(name, kRanks) * static_cast<double>(bytes) / kBytesPerS,
                       0.0});
    }
  }
  const std::vector<CommFit> fits = fit_operations(times);
  REQUIRE(fits.size() == 6);
  for (const CommFit& fit : fits) {
    INFO(fit.operation);
    REQUIRE(fit.latency_s ==
            Approx(kCall_s + messages(fit.operation, kRanks) * kMessage_s).epsilon(1e-6));
    REQUIRE(fit.bytes_per_s == Approx(kBytesPerS / bus_factor(fit.operation, kRanks)));
  }
  const plan::LinkOptions link = fit_link(fits, kRanks);
  REQUIRE(link.call_us == Approx(20.0).epsilon(1e-6));
  REQUIRE(link.latency_us == Approx(3.0).epsilon(1e-6));
  REQUIRE(link.bandwidth_gb_s == Approx(5.0).epsilon(1e-6));
}

TEST_CASE("every operation is timed at every size, on an odd number of ranks too", "[bench]") {
  parallel::run_as_threads(3, [](parallel::Communicator& world) {
    const auto times = time_operations({world, at::kCPU, 1 << 10, 1 << 12});
    if (times.size() != 12) throw Error(concat(times.size(), " times"));
    for (const CommTime& time : times) {
      if (time.seconds <= 0.0) throw Error("no time for " + time.operation);
    }
  });
}

TEST_CASE("the program writes what a plan can read", "[bench]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "comm.json").string();
  const std::string command =
      concat("'", test::program("aifs-bench").string(), "' comm --device cpu --largest 65536");
  REQUIRE(test::run_command(command).exit_code != 0);  // one rank
#ifdef AIFS_HAVE_MPI
  const auto result = test::run_command(concat(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 "
      "mpirun --oversubscribe --bind-to none -n 2 ",
      command, " --json '", file, "'"));
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(read_file(file));
  REQUIRE(json["results"].size() == 24);
  REQUIRE(json["fits"].size() == 6);
  REQUIRE(json["backend"] == "MPI");
  REQUIRE(plan::load_machine(file).node.bandwidth_gb_s ==
          Approx(json["machine"]["node"]["bandwidth_gb_s"].get<double>()));
#endif
}
