// SPDX-License-Identifier: Apache-2.0
#include "bench/comm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/run/device.h"
#include "bench/device_clock.h"
#include "bench/median.h"
#include "core/check.h"

#ifdef AIFS_HAVE_CUDA
#include "parallel/backends/nccl_direct.h"
#endif

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;
using Call = std::function<void()>;

// Makes what the communicator is compared with, where there is something.
#ifdef AIFS_HAVE_CUDA
using Direct = parallel::NcclDirect;
#else
struct Direct {};
#endif

constexpr int kWarmUp = 10, kRounds = 5;
constexpr double kRound_s = 0.1;  // what a round of calls should take
constexpr int64_t kMostCalls = 200;

double largest_of_ranks(parallel::Communicator& world, double value) {
  const at::Tensor number = at::full({1}, value, at::kDouble);
  world.all_reduce(number, parallel::Reduction::kMax);
  return number.item<double>();
}

// Seconds of one of `count` calls in a row, on the slowest rank.
double time_calls(const CommOptions& options, const Call& call, int64_t count) {
  app::wait_for(options.device);
  options.world.barrier();
  DeviceClock clock(options.device);
  clock.mark();
  for (int64_t i = 0; i < count; ++i)
    call();
  clock.mark();
  return largest_of_ranks(options.world,
                          clock.intervals_ms()[0] * 1e-3 / static_cast<double>(count));
}

// The best of several rounds of each call, in turn, so that both see the machine in the same state.
std::vector<double> seconds_of(const CommOptions& options, const std::vector<Call>& calls) {
  std::vector<double> best;
  for (const Call& call : calls)
    best.push_back(time_calls(options, call, kWarmUp));
  const double wanted = kRound_s / std::max(best.front(), 1e-9);
  const int64_t count = std::clamp<int64_t>(
      static_cast<int64_t>(std::min(wanted, static_cast<double>(kMostCalls))), 1, kMostCalls);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const double seconds = time_calls(options, calls[i], count);
      best[i] = round == 0 ? seconds : std::min(best[i], seconds);
    }
  }
  return best;
}

// One operation on buffers of `bytes` in all; of send and receive, even ranks do the one and odd
// ranks the other.
struct Operation {
  std::string name;
  Call call, direct;  // `direct` empty: there is none
};

std::vector<Operation> operations(const CommOptions& options, int64_t bytes,
                                  [[maybe_unused]] const std::shared_ptr<Direct>& nccl) {
  parallel::Communicator& world = options.world;
  const int size = world.size(), rank = world.rank();
  const int64_t rows = std::max<int64_t>(1, bytes / (4 * size));  // of each rank
  const parallel::Counts counts(static_cast<size_t>(size), rows);
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(options.device);
  const at::Tensor all = at::zeros({rows * size}, floats), own = at::zeros({rows}, floats),
                   received = at::zeros_like(all);
  const bool sends = rank % 2 == 0;
  const int partner = sends ? rank + 1 : rank - 1;
  std::vector<Operation> list{
      {"broadcast", [=, &world] { world.broadcast(all, 0); }, {}},
      {"all-reduce", [=, &world] { world.all_reduce(all, parallel::Reduction::kSum); }, {}},
      {"all-gather", [=, &world] { world.all_gather_rows_into(all, own, counts); }, {}},
      {"reduce-scatter", [=, &world] { world.reduce_scatter_rows_into(own, all, counts); }, {}},
      {"all-to-all",
       [=, &world] { world.all_to_all_rows_into(received, all, counts, counts); },
       {}},
      {"send",
       [=, &world] {
         if (partner >= size) return;
         sends ? world.send(all, partner) : world.receive(all, partner);
       },
       {}}};
#ifdef AIFS_HAVE_CUDA
  if (nccl) {
    list[0].direct = [=] { nccl->broadcast(all, 0); };
    list[1].direct = [=] { nccl->all_reduce(all); };
    list[2].direct = [=] { nccl->all_gather(own, all); };
    list[3].direct = [=] { nccl->reduce_scatter(all, own); };
    list[4].direct = [=] { nccl->all_to_all(all, received); };
    list[5].direct = [=] {
      if (partner >= size) return;
      sends ? nccl->send(all, partner) : nccl->receive(all, partner);
    };
  }
#endif
  return list;
}

}  // namespace

std::vector<CommTime> time_operations(const CommOptions& options,
                                      const std::function<void(const CommTime&)>& visit) {
  std::shared_ptr<Direct> direct;
#ifdef AIFS_HAVE_CUDA
  if (options.device.is_cuda()) direct = std::make_shared<Direct>(options.world);
#endif
  std::vector<CommTime> times;
  for (int64_t bytes = options.smallest; bytes <= options.largest; bytes *= 4) {
    for (const Operation& operation : operations(options, bytes, direct)) {
      std::vector<Call> calls{operation.call};
      if (operation.direct) calls.push_back(operation.direct);
      const std::vector<double> seconds = seconds_of(options, calls);
      times.push_back(
          {operation.name, bytes, seconds.front(), operation.direct ? seconds.back() : 0.0});
      if (visit) visit(times.back());
    }
  }
  return times;
}

double bus_factor(const std::string& operation, int ranks) {
  if (operation == "broadcast" || operation == "send") return 1.0;
  const double share = static_cast<double>(ranks - 1) / ranks;
  return operation == "all-reduce" ? 2.0 * share : share;
}

double messages(const std::string& operation, int ranks) {
  if (operation == "send") return 1.0;
  if (operation == "broadcast") return std::bit_width(static_cast<unsigned>(ranks - 1));
  return operation == "all-reduce" ? 2.0 * (ranks - 1) : ranks - 1;
}

std::vector<CommFit> fit_operations(const std::vector<CommTime>& times) {
  struct Sums {  // of relative errors (a + b n) / t - 1
    int64_t count = 0;
    double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  };
  std::vector<std::pair<std::string, Sums>> by_name;
  for (const CommTime& time : times) {
    auto found = std::find_if(by_name.begin(), by_name.end(),
                              [&](const auto& entry) { return entry.first == time.operation; });
    if (found == by_name.end()) found = by_name.insert(found, {time.operation, {}});
    Sums& s = found->second;
    const double one = 1.0 / time.seconds, n = static_cast<double>(time.bytes) / time.seconds;
    ++s.count;
    s.aa += one * one;
    s.ab += one * n;
    s.bb += n * n;
    s.a += one;
    s.b += n;
  }
  std::vector<CommFit> fits;
  for (const auto& [name, s] : by_name) {
    if (s.count < 2) continue;
    const double determinant = s.aa * s.bb - s.ab * s.ab;
    const double latency = std::max(0.0, (s.a * s.bb - s.b * s.ab) / determinant);
    const double per_byte = (s.b - latency * s.ab) / s.bb;
    fits.push_back({name, latency, 1.0 / std::max(per_byte, 1e-15)});
  }
  return fits;
}

plan::LinkOptions fit_link(const std::vector<CommFit>& fits, int ranks) {
  AIFS_CHECK(!fits.empty() && ranks > 1, fits.size(), " fits of ", ranks, " ranks");
  double mean_messages = 0, mean_latency = 0;
  std::vector<double> bandwidths;
  for (const CommFit& fit : fits) {
    mean_messages += messages(fit.operation, ranks) / static_cast<double>(fits.size());
    mean_latency += fit.latency_s / static_cast<double>(fits.size());
    bandwidths.push_back(bus_factor(fit.operation, ranks) * fit.bytes_per_s);
  }
  double covariance = 0, variance = 0;
  for (const CommFit& fit : fits) {
    const double away = messages(fit.operation, ranks) - mean_messages;
    covariance += away * (fit.latency_s - mean_latency);
    variance += away * away;
  }
  const double slope = variance > 0 ? covariance / variance : 0.0;
  const double message_s = std::clamp(slope, 0.0, mean_latency / mean_messages);
  return {.call_us = (mean_latency - message_s * mean_messages) * 1e6,
          .latency_us = message_s * 1e6,
          .bandwidth_gb_s = median(bandwidths) * 1e-9};
}

Json to_json(const std::vector<CommTime>& times, const std::vector<CommFit>& fits,
             const parallel::Communicator& world, int ranks_per_host) {
  Json results = Json::array(), lines = Json::array();
  for (const CommTime& time : times) {
    const double bus = bus_factor(time.operation, world.size()) * static_cast<double>(time.bytes);
    results.push_back({{"operation", time.operation},
                       {"bytes", time.bytes},
                       {"us", time.seconds * 1e6},
                       {"bus_gb_s", bus / time.seconds * 1e-9}});
    if (time.direct_s > 0.0) {
      results.back()["direct_us"] = time.direct_s * 1e6;
      results.back()["of_direct"] = time.direct_s / time.seconds;
    }
  }
  for (const CommFit& fit : fits) {
    lines.push_back({{"operation", fit.operation},
                     {"latency_us", fit.latency_s * 1e6},
                     {"bandwidth_gb_s", fit.bytes_per_s * 1e-9}});
  }
  Json json{
      {"backend", world.backend()}, {"ranks", world.size()}, {"results", results}, {"fits", lines}};
  if (fits.empty() || world.size() == 1) return json;
  plan::LinkOptions link = fit_link(fits, world.size());
  const bool spans_hosts = ranks_per_host > 0 && ranks_per_host < world.size();
  Json machine{{"name", concat(world.size(), " ranks over ", world.backend())}};
  if (spans_hosts) machine["ranks_per_node"] = ranks_per_host;
  machine[spans_hosts ? "network" : "node"] = config::write_object(config::fields_of(link));
  json["machine"] = machine;
  return json;
}

}  // namespace aifs::bench
