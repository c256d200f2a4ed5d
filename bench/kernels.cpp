// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "app/run/device.h"
#include "bench/device_clock.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/first_line.h"
#include "graph/nodes/tri_kinds.h"
#include "graph/stored_graph.h"
#include "model/nodes/graph_tensors.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kUntimed = 3;

// Seconds of each of some calls, before each of which the caches are filled with something else:
// by reading, which leaves nothing to be written back.
std::vector<double> time_cold(const at::Device& device, int64_t repetitions,
                              const std::function<void()>& call) {
  const int64_t more_than_caches_bytes = device.is_cuda() ? int64_t{1} << 28 : 1 << 25;
  const at::Tensor other = at::zeros({more_than_caches_bytes / 4}, at::TensorOptions(device));
  for (int64_t i = 0; i < kUntimed; ++i)
    call();
  DeviceClock clock(device);
  for (int64_t i = 0; i < repetitions; ++i) {
    other.sum();
    clock.mark();
    call();
    clock.mark();
  }
  const std::vector<double> ms = clock.intervals_ms();
  std::vector<double> seconds;
  for (size_t i = 0; i < ms.size(); i += 2)  // between them the caches are filled
    seconds.push_back(1e-3 * ms[i]);
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

double bytes_of(const TensorList& tensors) {
  double bytes = 0;
  for (const at::Tensor& tensor : tensors)
    bytes += static_cast<double>(tensor.nbytes());
  return bytes;
}

// The type in which a reference computes: what rounding leaves of it does not count.
at::ScalarType reference_type(at::ScalarType type) {
  return type == at::kFloat ? at::kDouble : at::kFloat;
}

at::Tensor widened(const at::Tensor& x, at::ScalarType type) {
  return x.scalar_type() == at::kByte ? decoded_slopes(x, type) : x.to(type);
}

// Returns what sums in fp32, or results in bfloat16 and slopes in 8 bits, may come to. Products are
// rounded before anything else happens to them by the CPU, and by a card where they are more than
// 512 deep.
double largest_distance(const KernelSite& site) {
  if (site.type == at::kFloat) return 1e-5;
  return site.device.is_cpu() || site.channels > 512 ? 2e-2 : 1e-2;
}

double distance_of(const KernelWork& work, at::ScalarType type) {
  const at::ScalarType wide = reference_type(type);
  TensorList inputs;
  for (const at::Tensor& input : work.inputs)
    inputs.push_back(widened(input, wide));
  const TensorList expected = work.expect(inputs);
  inputs.clear();
  const TensorList got = work.run(work.inputs);
  AIFS_CHECK(got.size() == expected.size(), got.size(), " results, ", expected.size(), " expected");
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const at::Tensor difference = widened(got[i], wide).sub(expected[i]).abs_();
    const double relative =
        difference.max().item<double>() / expected[i].abs().max().item<double>();
    largest = std::max(largest,
                       std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative);
  }
  return largest;
}

// Rows of a network.
struct Place {
  const char* name;
  RowsOf rows;
  const char *source = nullptr, *target = nullptr;  // of the edges, or those that end at the nodes
};
constexpr std::array kPlaces{Place{"encoder", RowsOf::kEdges, "data", "hidden"},
                             Place{"processor", RowsOf::kEdges, "hidden", "hidden"},
                             Place{"decoder", RowsOf::kEdges, "hidden", "data"},
                             Place{"hidden", RowsOf::kNodes, "hidden", "hidden"},
                             Place{"data", RowsOf::kNodes, "hidden", "data"}};
constexpr Place kWeights{"weights", RowsOf::kWeights};

struct KernelCase {
  std::string name;
  const Kernel& kernel;
  std::string graph;  // empty: none
  const Place& place;
  int64_t channels;
  at::ScalarType type;
};

Json run_case(const KernelCase& c, const KernelSite& site, const KernelBenchOptions& options,
              const DeviceLimits& limits) {
  Json json{{"case", c.name}};
  try {
    const KernelWork work = c.kernel.prepare(site);
    const double distance = distance_of(work, site.type);
    TensorList results;
    const std::vector<double> seconds = time_cold(options.device, options.repetitions, [&] {
      results.clear();
      results = work.run(work.inputs);
    });
    const double bytes = bytes_of(work.inputs) + bytes_of(results);
    const double median = seconds[seconds.size() / 2];
    const double least = std::max(bytes / limits.bytes_per_s, work.flops / limits.flop_per_s);
    json.update({{"rows", site.num_rows()},
                 {"us", 1e6 * median},
                 {"spread", (seconds.back() - seconds.front()) / median},
                 {"gb_s", 1e-9 * bytes / median},
                 {"tflop_s", 1e-12 * work.flops / median},
                 {"of_limit", least / median},
                 {"distance", distance},
                 {"within", distance <= largest_distance(site)}});
  } catch (const std::exception& error) {
    json["error"] = first_line(error.what());
  }
  empty_memory_cache(options.device);
  return json;
}

std::regex read_pattern(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error&) {
    throw ConfigError("--case", concat("'", text, "' is no regular expression"));
  }
}

std::vector<KernelCase> chosen_cases(const KernelBenchOptions& options) {
  const std::regex pattern = read_pattern(options.pattern);
  std::vector<KernelCase> cases;
  const auto add = [&](const Kernel& kernel, const std::string& graph, const Place& place) {
    if (std::find(kernel.rows.begin(), kernel.rows.end(), place.rows) == kernel.rows.end()) return;
    for (const int64_t channels : options.channels) {
      for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
        if (std::find(kernel.types.begin(), kernel.types.end(), type) == kernel.types.end())
          continue;
        const std::string name =
            concat(kernel.name, "-", channels, "-", graph, graph.empty() ? "" : "-", place.name,
                   "-", type == at::kFloat ? "fp32" : "bf16");
        if (std::regex_search(name, pattern))
          cases.push_back({name, kernel, graph, place, channels, type});
      }
    }
  };
  for (const Kernel& kernel : kernels()) {
    add(kernel, "", kWeights);
    for (const std::string& graph : options.graphs) {
      for (const Place& place : kPlaces)
        add(kernel, graph, place);
    }
  }
  if (cases.empty()) {
    throw ConfigError("--case", concat("no kernel's case has a name like '", options.pattern, "'"),
                      "for example norm-backward-512-n320-tri6-decoder-bf16");
  }
  return cases;
}

// The graph that graph.grid and graph.hidden.refinement give, "n320-tri6". Kept as a file if graphs
// are kept.
model::GraphTensors load_graph(const std::string& name, const KernelBenchOptions& options) {
  static const std::regex pattern("([on][0-9]{1,5})-tri([0-9]|1[0-2])");
  std::smatch match;
  if (!std::regex_match(name, match, pattern)) {
    throw ConfigError("--graph", concat("'", name, "' is no graph"), "for example n320-tri6");
  }
  graph::GraphOptions graph;
  graph.grid = match[1];
  graph.hidden.kind.set(graph::TriKind(std::stoll(match[2])));
  if (!options.graph_cache.empty()) {
    make_directories(options.graph_cache);
    graph.file = fs::path(options.graph_cache) / (name + ".nc");
  }
  return model::GraphTensors::create(graph::load_or_build_graph(graph, {}), {}, at::kFloat)
      .to(options.device);
}

}  // namespace

DeviceLimits measure_limits(const c10::Device& device, bool sustained) {
  constexpr int64_t kRepetitions = 10;
  const int64_t side = device.is_cuda() ? 8192 : 512;
  const int64_t bytes = device.is_cuda() ? int64_t{1} << 30 : 1 << 26;
  const auto options =
      at::TensorOptions(device).dtype(device.is_cuda() ? at::kBFloat16 : at::kFloat);
  const at::Tensor from = at::zeros({bytes}, options.dtype(at::kByte)), to = at::empty_like(from);
  const at::Tensor a = at::randn({side, side}, options), b = at::randn({side, side}, options);
  const auto median = [&](const std::function<void()>& call) {
    const double seconds = time_cold(device, kRepetitions, call)[kRepetitions / 2];
    if (!sustained) return seconds;
    for (double passed = 0.0; passed < 1.0; passed += seconds)
      call();
    return time_cold(device, kRepetitions, call)[kRepetitions / 2];
  };
  return {2.0 * static_cast<double>(bytes) / median([&] { to.copy_(from); }),
          2.0 * static_cast<double>(side * side * side) / median([&] { at::mm(a, b); })};
}

Json time_kernels(const KernelBenchOptions& options, const DeviceLimits& limits,
                  const std::function<void(const Json&)>& visit) {
  at::manual_seed(1);
  std::map<std::string, model::GraphTensors> graphs;
  Json results = Json::array();
  for (const KernelCase& c : chosen_cases(options)) {
    KernelSite site{c.place.rows, nullptr, options.device, c.channels, c.type};
    if (!c.graph.empty()) {
      if (!graphs.contains(c.graph)) graphs.emplace(c.graph, load_graph(c.graph, options));
      site.edges = graphs.at(c.graph).edges(c.place.source, c.place.target).index;
    }
    results.push_back(run_case(c, site, options, limits));
    visit(results.back());
  }
  return results;
}

}  // namespace aifs::bench
