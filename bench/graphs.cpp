// SPDX-License-Identifier: Apache-2.0
#include "bench/graphs.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/first_line.h"
#include "core/seconds_since.h"
#include "graph/edges/mesh_kinds.h"
#include "graph/graph_file.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/grid_kinds.h"
#include "graph/nodes/tri_kinds.h"
#include "graph/stored_graph.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kTolerance = 5e-5;  // of numbers of edges

// Edges of Anemoi 0.9.8 with the default settings: cut-off 0.6, at most 64 a target; 3 nearest.
struct Reference {
  const char* graph;
  std::array<int64_t, 3> edges;
};
constexpr auto kReferences = std::to_array<Reference>({
    {"o96-tri5", {62980, 81840, 120960}},
    {"o96-o48", {51608, 0, 120960}},
    {"n320-tri5", {655488, 81840, 1626240}},
    {"n320-tri6", {852840, 327600, 1626240}},
    {"n320-tri7", {850466, 1310640, 1626240}},
    {"n320-o96", {748356, 0, 1626240}},
    {"o1280-tri7", {9860568, 1310640, 19799040}},
    {"o1280-tri8", {10402674, 5242800, 19799040}},
    {"o1280-o320", {9342422, 0, 19799040}},
    {"o2560-tri8", {39352172, 5242800, 78919680}},
    {"o2560-tri9", {41460622, 20971440, 78919680}},
});

graph::GraphOptions options_of(const std::string& name, int64_t threads) {
  graph::GraphOptions options;
  if (threads > 0) options.threads = threads;
  const size_t dash = name.find('-');
  try {
    options.grid = name.substr(0, dash);
    const std::string hidden = dash == std::string::npos ? "" : name.substr(dash + 1);
    if (hidden.rfind("tri", 0) == 0 && hidden.size() == 4 && hidden[3] >= '0' && hidden[3] <= '9') {
      options.hidden.kind.set(graph::TriKind(hidden[3] - '0'));
    } else {
      graph::GaussianGridKind grid;
      grid.grid = hidden;
      graph::parse_gaussian_grid(hidden);
      options.hidden.kind.set(grid);
      options.processor.kind.choose("none");
    }
    options.validate("graph");
  } catch (const Error& error) {
    throw ConfigError("--graph", concat("'", name, "': ", error.what()),
                      "<data grid>-tri<refinement> or <data grid>-<hidden grid>");
  }
  return options;
}

// Holds what a process of its own has found, and what it took.
struct Outcome {
  Json json;
  double cpu_s = 0.0, peak_gib = 0.0;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

void write_all(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count <= 0) return;  // the reader finds the text incomplete
    done += static_cast<size_t>(count);
  }
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = ::read(fd, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<size_t>(count));
  return text;
}

// Calls work() in a process of its own. What it throws is the "error".
Outcome apart(const std::function<Json()>& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw Error("there is no pipe for a process");
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) throw Error("a process cannot be started");
  if (child == 0) {
    Json json;
    try {
      json = work();
    } catch (const std::exception& error) {
      json["error"] = first_line(error.what());
    }
    write_all(ends[1], json.dump());
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  struct rusage usage {};
  if (::wait4(child, &status, 0, &usage) != child) throw Error("a process was lost");
  Outcome outcome{.json = Json::parse(text, nullptr, /*allow_exceptions=*/false),
                  .cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime),
                  .peak_gib = 1024.0 * static_cast<double>(usage.ru_maxrss) / kGib};
  if (outcome.json.is_discarded())
    outcome.json = {{"error", concat("the process ended with status ", status)}};
  return outcome;
}

int64_t edges_between(const graph::Graph& graph, const char* source, const char* target) {
  for (const graph::EdgeSet& set : graph.edge_sets)
    if (set.source == source && set.target == target) return set.num_edges();
  return 0;
}

Json built(const graph::GraphOptions& options) {
  graph::GraphReport report;
  const auto start = Clock::now();
  const graph::Graph graph = graph::build_graph(options, {}, &report);
  Json json{{"build_s", seconds_since(start)}};
  for (const auto& part : report.parts)
    json["parts_s"][part.name] = part.seconds;
  for (const graph::NodeSet& nodes : graph.node_sets)
    json["num_nodes"].push_back(nodes.num_nodes());
  json["num_edges"] = {edges_between(graph, "data", "hidden"),
                       edges_between(graph, "hidden", "hidden"),
                       edges_between(graph, "hidden", "data")};
  return json;
}

Json saved(const graph::GraphOptions& options, const fs::path& file) {
  const graph::Graph graph = graph::build_graph(options, {});
  const auto start = Clock::now();
  const std::string hash = graph::save_graph(file, graph, graph::build_hash(options, {}));
  return {{"save_s", seconds_since(start)},
          {"content", hash},
          {"file_mib", static_cast<double>(fs::file_size(file)) / (1024.0 * 1024.0)}};
}

Json loaded(graph::GraphOptions options, const fs::path& file) {
  options.file = file.string();
  const auto start = Clock::now();
  graph::load_or_build_graph(options, {});
  return {{"load_s", seconds_since(start)}};
}

Json copied(const fs::path& file) {
  auto start = Clock::now();
  const std::string bytes = read_file(file);
  Json json{{"read_s", seconds_since(start)}};
  start = Clock::now();
  write_file_atomic(file.string() + ".copy", bytes);
  json["write_s"] = seconds_since(start);
  fs::remove(file.string() + ".copy");
  return json;
}

// Adds the outcome of the fastest of some runs to the result.
void add(Json& result, const std::string& name, int64_t repetitions,
         const std::function<Json()>& work) {
  if (result.contains("error")) return;
  Outcome best;
  double least = 0.0;
  for (int64_t i = 0; i < repetitions; ++i) {
    Outcome outcome = apart(work);
    const double time = outcome.json.value(name + "_s", 0.0);
    if (i > 0 && time >= least && !outcome.json.contains("error")) continue;
    least = time;
    best = std::move(outcome);
    if (best.json.contains("error")) break;
  }
  result.update(best.json);
  if (name != "build" && name != "load") return;
  result[name + "_cpu_s"] = best.cpu_s;
  result[name + "_gib"] = best.peak_gib;
}

void compare_edges(Json& result, const std::string& name) {
  if (result.contains("error")) return;
  const auto found = std::find_if(kReferences.begin(), kReferences.end(),
                                  [&](const Reference& known) { return name == known.graph; });
  if (found == kReferences.end()) return;
  result["reference_edges"] = found->edges;
  bool within = true;
  for (size_t i = 0; i < found->edges.size(); ++i) {
    const auto wanted = static_cast<double>(found->edges[i]);
    const double ours = result["num_edges"][i].get<double>();
    within = within && std::abs(ours - wanted) <= kTolerance * wanted;
  }
  result["within"] = within;
}

}  // namespace

Json time_graphs(const GraphBenchOptions& options, const std::function<void(const Json&)>& visit) {
  for (const std::string& name : options.graphs)
    options_of(name, options.threads);  // what is wrong with one is said before others take time
  make_directories(options.folder);
  Json results = Json::array();
  for (const std::string& name : options.graphs) {
    const graph::GraphOptions graph = options_of(name, options.threads);
    const fs::path file = options.folder / (name + "-bench.nc");
    Json result{{"case", name}, {"threads", options.threads}};
    add(result, "build", options.repetitions, [&] { return built(graph); });
    add(result, "save", 1, [&] { return saved(graph, file); });
    add(result, "load", options.repetitions, [&] { return loaded(graph, file); });
    add(result, "copy", 1, [&] { return copied(file); });
    std::error_code ignored;
    fs::remove(file, ignored);
    compare_edges(result, name);
    visit(result);
    results.push_back(std::move(result));
  }
  return results;
}

std::string graph_text(const Json& result) {
  std::string text(160, '\0');
  const std::string name = result["case"].get<std::string>();
  if (result.contains("error"))
    return concat(name, " failed: ", result["error"].get<std::string>());
  const auto number = [&](const char* key) { return result[key].get<double>(); };
  const int length = std::snprintf(
      text.data(), text.size(),
      "%-12s build %7.2f s (CPU %7.2f s, %5.2f GiB)  save %6.2f s  load %5.2f s (%5.2f GiB)",
      name.c_str(), number("build_s"), number("build_cpu_s"), number("build_gib"), number("save_s"),
      number("load_s"), number("load_gib"));
  text.resize(static_cast<size_t>(std::max(length, 0)));
  if (!result.value("within", true)) text += "  OTHER NUMBERS OF EDGES";
  return text;
}

}  // namespace aifs::bench
