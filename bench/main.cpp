// SPDX-License-Identifier: Apache-2.0
// aifs-bench: measures, prints a line per case, and writes JSON that tools can compare.
#include <ATen/Parallel.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/data_tools/cli_checks.h"
#include "app/data_tools/read_rates.h"
#include "app/run/device.h"
#include "app/run/exit_codes.h"
#include "app/run/versions.h"
#include "bench/comm.h"
#include "bench/compare.h"
#include "bench/decode.h"
#include "bench/graphs.h"
#include "bench/kernels.h"
#include "bench/step.h"
#include "core/check.h"
#include "core/config.h"
#include "core/file_io.h"
#include "core/first_line.h"
#include "core/version.h"
#include "parallel/launch/runtime.h"
#include "parallel/launch/versions.h"
#include "parallel/process_mesh.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;

struct CommandLine {
  std::vector<std::string> configs;  // of steps
  std::string device = "auto", json, graph_cache, trace, compare, text;
  int64_t steps = 20, warm_up = 5, threads = 0;
  bool forward_only = false, no_check = false, no_time = false, profile = false, roofline = false;
  int64_t smallest = 1 << 10, largest = 1 << 30;
  KernelBenchOptions lab;
  std::string config;
  std::vector<std::string> overrides;
  int64_t batches = 50;
  std::vector<int64_t> readers;
  double cells = 1.0;
  bool warm_only = false;
  GraphBenchOptions graphs;
  std::string folder;
};

template <class E>
E choice(const std::string& option, const std::string& text) {
  for (const auto& [value, name] : EnumNames<E>::table) {
    if (text == name) return value;
  }
  std::string allowed;
  for (const std::string& name : enum_names<E>())
    allowed += concat(allowed.empty() ? "" : " | ", name);
  throw ConfigError(option, concat("got '", text, "', allowed is ", allowed));
}

Json versions() {
  const parallel::Versions parallel = parallel::versions();
  return {{"aifs-train", kVersion},
          {"torch", app::torch_version()},
          {"cuda", parallel.cuda},
          {"compiler", kCompiler}};
}

// Adds where a result comes from.
void sign(Json& json, const CommandLine& c, const at::Device& device) {
  json["card"] = app::device_name(device);
  json["commit"] = app::commit();
  json["command"] = c.text;
  json["versions"] = versions();
}

// Signs a result, and writes it where it is wanted.
void write_signed(Json& json, const CommandLine& c, const at::Device& device) {
  sign(json, c, device);
  if (!c.json.empty()) write_file_atomic(c.json, json.dump(2) + "\n");
}

// The device of this process, which has this number on its host.
at::Device own_device(const CommandLine& c, int local_rank = parallel::launched_local_rank()) {
  return app::choose_device(choice<app::DeviceChoice>("--device", c.device), local_rank);
}

// The configuration of a case, with a file for its graph if graphs are kept.
app::RunConfig load_case(const CommandLine& c, const std::string& file) {
  app::RunConfig config = app::load_config(file, c.overrides);
  graph::GraphOptions& graph = config.graph;
  const auto refinement = graph.hidden.kind->refinement();
  if (c.graph_cache.empty() || !graph.file.empty() || graph.grid == "dataset" || !refinement)
    return config;
  make_directories(c.graph_cache);
  graph.file = fs::path(c.graph_cache) / concat(graph.grid, "-tri", *refinement, ".nc");
  return config;
}

void print_step(const std::string& name, const Json& json) {
  std::printf("%-28s %-8s %9.2f ms  (spread %.1f %%)  peak %.2f GiB  %.1f TFLOP, MFU %.1f %%\n",
              name.c_str(), json["mode"].get<std::string>().c_str(), json["step_ms"].get<double>(),
              100.0 * json["spread"].get<double>(), json["peak_gib"].get<double>(),
              json.value("tflop", 0.0), 100.0 * json.value("mfu", 0.0));
}

// Runs the case of a configuration, which has its file's name; "error" instead of figures if it
// fails, so that the others still run.
Json run_case(const CommandLine& c, const std::string& file, const at::Device& device,
              parallel::Communicator& world) {
  const std::string name = fs::path(file).stem().string();
  Json json{{"case", name}};
  try {
    const app::RunConfig config = load_case(c, file);
    const parallel::ProcessMesh mesh(
        world, parallel::complete_sizes(config.parallel.sizes, world.size(), "parallel"));
    if (!c.no_time) {
      json = time_steps(config, {.name = name,
                                 .mesh = mesh,
                                 .device = device,
                                 .warm_up = c.warm_up,
                                 .steps = c.steps,
                                 .forward_only = c.forward_only,
                                 .profile = c.profile,
                                 .trace = c.trace,
                                 .roofline = c.roofline});
      print_step(name, json);
    }
    if (!c.no_check && !can_check(config)) {
      std::printf("%-28s not compared: its data are on one grid, or its values are sharded\n", "");
    } else if (!c.no_check) {
      const Json& check = json["check"] = check_equality(config, device, mesh);
      std::printf("%-28s loss %.2e, gradients %.2e (cosine %.6f) from fp32 on the CPU: %s\n", "",
                  check["loss_relative"].get<double>(), check["gradient_rms"].get<double>(),
                  check["gradient_cosine"].get<double>(),
                  check["within"].get<bool>() ? "within bounds" : "OUT OF BOUNDS");
    }
  } catch (const std::exception& error) {
    json["error"] = first_line(error.what());
    std::printf("%-28s failed: %s\n", name.c_str(), json["error"].get<std::string>().c_str());
  }
  std::fflush(stdout);
  sign(json, c, device);
  return json;
}

void print_time(const CommTime& time, int ranks) {
  const double bus = bus_factor(time.operation, ranks) * static_cast<double>(time.bytes);
  std::printf("%-14s %11lld B %12.1f us %9.2f GB/s", time.operation.c_str(),
              static_cast<long long>(time.bytes), time.seconds * 1e6, bus / time.seconds * 1e-9);
  if (time.direct_s > 0.0)
    std::printf("  %5.1f %% of NCCL alone", 100.0 * time.direct_s / time.seconds);
  std::printf("\n");
  std::fflush(stdout);
}

// Times communication between all ranks.
int run_comm(const CommandLine& c) {
  parallel::Runtime runtime(/*timeout_s=*/300.0);
  if (runtime.size() == 1) {
    throw ConfigError("comm", "there is one rank, which has nobody to talk to",
                      "start more: mpirun -n 2 aifs-bench comm ...");
  }
  const at::Device device = own_device(c, runtime.local_rank());
  if (device.is_cuda()) runtime.use_nccl();
  const bool is_main = runtime.rank() == 0;
  const CommOptions options{runtime.world(), device, c.smallest, c.largest};
  const std::vector<CommTime> times = time_operations(options, [&](const CommTime& time) {
    if (is_main) print_time(time, runtime.size());
  });
  if (!is_main) return app::kSuccess;
  const std::vector<CommFit> fits = fit_operations(times);
  for (const CommFit& fit : fits) {
    std::printf("%-14s %12.2f us + bytes / %.2f GB/s\n", fit.operation.c_str(), fit.latency_s * 1e6,
                fit.bytes_per_s * 1e-9);
  }
  Json json = to_json(times, fits, runtime.world(), runtime.local_size());
  write_signed(json, c, device);
  return app::kSuccess;
}

// The earlier results that --compare names.
Json earlier_results(const CommandLine& c) {
  return c.compare.empty() ? Json() : config::parse_json(read_file(c.compare), c.compare);
}

// Prints what took longer than before; whether nothing did.
bool no_slower(const CommandLine& c, const Json& results, const Json& earlier) {
  if (c.compare.empty()) return true;
  const std::vector<std::string> lines = slower_than(results, earlier);
  for (const std::string& line : lines)
    std::printf("%s\n", line.c_str());
  return lines.empty();
}

void print_kernel(const Json& result) {
  const auto number = [&](const char* key) { return result[key].get<double>(); };
  std::printf("%-52s ", result["case"].get<std::string>().c_str());
  if (result.contains("error")) {
    std::printf("failed: %s\n", result["error"].get<std::string>().c_str());
  } else {
    std::printf("%9.1f us %7.0f GB/s %6.1f TFLOP/s %5.1f %% of the limit, off by %.1e%s\n",
                number("us"), number("gb_s"), number("tflop_s"), 100.0 * number("of_limit"),
                number("distance"), result["within"].get<bool>() ? "" : ": OUT OF BOUNDS");
  }
  std::fflush(stdout);
}

// Times the kernels of this process's device, one by one.
int run_kernels(const CommandLine& c) {
  auto lab = c.lab;
  const at::Device device = lab.device = own_device(c);
  lab.graph_cache = c.graph_cache;
  app::set_arithmetic(train::Precision::kFp32, device);  // of the references
  const Json earlier = earlier_results(c);
  const DeviceLimits limits = measure_limits(device);
  std::printf("%s: copies %.0f GB/s, products %.1f TFLOP/s\n", app::device_name(device).c_str(),
              1e-9 * limits.bytes_per_s, 1e-12 * limits.flop_per_s);
  Json json{
      {"limits",
       {{"copy_gb_s", 1e-9 * limits.bytes_per_s}, {"product_tflop_s", 1e-12 * limits.flop_per_s}}},
      {"results", time_kernels(lab, limits, print_kernel)}};
  bool sound = true;
  for (Json& result : json["results"]) {
    result["card"] = app::device_name(device);
    sound = sound && result.value("within", false);
  }
  write_signed(json, c, device);
  return no_slower(c, json["results"], earlier) && sound ? app::kSuccess : app::kNumerical;
}

void print_reading(const Json& result) {
  std::puts(app::reading_text(result).c_str());
  std::fflush(stdout);
}

// Times the reading of a configuration's training data.
int run_data(const CommandLine& c) {
  const app::ReadRateOptions options{.config = app::load_config(c.config, c.overrides),
                                     .batches = c.batches,
                                     .device = own_device(c),
                                     .threads = c.readers,
                                     .cells = c.cells,
                                     .cold = !c.warm_only};
  const Json earlier = earlier_results(c);
  Json json{{"results", app::time_reading(options, print_reading)}};
  for (Json& result : json["results"])
    result["card"] = app::device_name(options.device);
  write_signed(json, c, options.device);
  return no_slower(c, json["results"], earlier) ? app::kSuccess : app::kNumerical;
}

// Times the decoding of the same data on the device; fails if its values are others.
int run_decode(const CommandLine& c) {
  DecodeOptions options{.config = app::load_config(c.config, c.overrides),
                        .batches = c.batches,
                        .device = own_device(c)};
  if (!c.readers.empty()) options.threads = c.readers;
  Json json{{"results", time_decoding(options, [](const Json& result) {
               std::puts(decoding_text(result).c_str());
               std::fflush(stdout);
             })}};
  bool sound = true;
  for (Json& result : json["results"]) {
    result["card"] = app::device_name(options.device);
    sound = sound && result.value("identical", true);
  }
  write_signed(json, c, options.device);
  return sound ? app::kSuccess : app::kNumerical;
}

// Times the building, storing and loading of graphs; fails if one has other numbers of edges.
int run_graphs(const CommandLine& c) {
  GraphBenchOptions options = c.graphs;
  options.threads = c.threads;
  options.folder = c.folder.empty() ? fs::temp_directory_path() : fs::path(c.folder);
  Json json{{"results", time_graphs(options, [](const Json& result) {
               std::puts(graph_text(result).c_str());
               std::fflush(stdout);
             })}};
  bool sound = true;
  for (const Json& result : json["results"])
    sound = sound && !result.contains("error") && result.value("within", true);
  write_signed(json, c, at::kCPU);
  return sound ? app::kSuccess : app::kNumerical;
}

int run_steps(const CommandLine& c) {
  parallel::Runtime runtime(/*timeout_s=*/300.0);
  const at::Device device = own_device(c, runtime.local_rank());
  if (device.is_cuda() && runtime.size() > 1) runtime.use_nccl();
  const bool is_main = runtime.rank() == 0;
  if (!is_main && !std::freopen("/dev/null", "w", stdout))
    throw Error("standard output of a rank that has nothing to say cannot be closed");
  const Json earlier = earlier_results(c);
  for (const std::string& file : c.configs)
    load_case(c, file);  // what is wrong with one is said before others take their time
  Json results = Json::array();
  bool sound = true;
  for (const std::string& file : c.configs) {
    results.push_back(run_case(c, file, device, runtime.world()));
    const Json& result = results.back();
    sound = sound && !result.contains("error") &&
            (!result.contains("check") || result["check"]["within"].get<bool>());
    if (!c.json.empty() && is_main) write_file_atomic(c.json, results.dump(2) + "\n");
  }
  return no_slower(c, results, earlier) && sound ? app::kSuccess : app::kNumerical;
}

void add_step_options(CLI::App& step, CommandLine& c) {
  step.add_option("--config", c.configs,
                  "configuration of a run, which is the case of its file's name; repeatable")
      ->required()
      ->check(CLI::ExistingFile)
      ->take_all()
      ->allow_extra_args(false);
  step.add_option("--set", c.overrides, "path.to.key=value, in all of them; repeatable")
      ->take_all()
      ->allow_extra_args(false);
  step.add_option("--steps", c.steps, "steps that are timed")->check(app::at_least(1));
  step.add_option("--warm-up", c.warm_up,
                  "steps before them; the second one records CUDA graphs, if there are any")
      ->check(app::at_least(1));
  step.add_flag("--profile", c.profile, "time by kernel of one more step");
  step.add_option("--trace", c.trace, "file for a timeline of that step, of the first rank");
  step.add_flag("--roofline", c.roofline,
                "least time of the kernels of one more step at the limits of the card");
  step.add_flag("--forward-only", c.forward_only, "time forecasts without loss and gradients");
  step.add_flag("--no-check", c.no_check, "skip the comparison with fp32 on the CPU");
  step.add_flag("--no-time", c.no_time, "only compare");
}

void add_kernel_options(CLI::App& kernels, CommandLine& c) {
  kernels.add_option("--case", c.lab.pattern,
                     "those whose <kernel>-<channels>-<graph>-<rows>-<type> has a part like this "
                     "regular expression");
  kernels.add_option("--graph", c.lab.graphs, "<data grid>-tri<n>; repeatable")
      ->take_all()
      ->allow_extra_args(false);
  kernels.add_option("--channels", c.lab.channels, "repeatable")
      ->take_all()
      ->allow_extra_args(false)
      ->check(app::at_least(1));
  kernels.add_option("--repetitions", c.lab.repetitions, "calls that are timed")
      ->check(app::at_least(1));
}

void add_reading_options(CLI::App& reading, CommandLine& c) {
  reading.add_option("--config", c.config, "configuration of a run")
      ->required()
      ->check(CLI::ExistingFile);
  reading.add_option("--set", c.overrides, "path.to.key=value; repeatable")
      ->take_all()
      ->allow_extra_args(false);
  reading.add_option("--batches", c.batches, "how many to read")->check(app::at_least(1));
  reading.add_option("--readers", c.readers, "numbers of reader threads, one pass each")
      ->check(app::at_least(1));
}

void add_graph_options(CLI::App& graphs, CommandLine& c) {
  graphs
      .add_option("--graph", c.graphs.graphs,
                  "<data grid>-tri<n> or <data grid>-<hidden grid>; repeatable; those up to O1280 "
                  "if none is named (o2560-tri9 takes a minute and 5 GiB)")
      ->take_all()
      ->allow_extra_args(false);
  graphs.add_option("--repetitions", c.graphs.repetitions, "the fastest one counts")
      ->check(app::at_least(1));
  graphs.add_option("--folder", c.folder,
                    "for the files, which are removed; else that of the system");
}

struct Command {
  CLI::App* app;
  int (*run)(const CommandLine& c);
};

std::vector<Command> add_commands(CLI::App& program, CommandLine& c) {
  CLI::App* step = program.add_subcommand(
      "step", "whole training steps of configurations, on their first batch");
  add_step_options(*step, c);
  CLI::App* comm = program.add_subcommand(
      "comm", "every operation between ranks (start with mpirun), and a fit that plans can use");
  comm->add_option("--smallest", c.smallest, "bytes")->check(app::at_least(1));
  comm->add_option("--largest", c.largest, "bytes")->check(app::at_least(1));
  CLI::App* kernels = program.add_subcommand(
      "kernels", "every kernel against LibTorch's operators and the limits of the card");
  add_kernel_options(*kernels, c);
  CLI::App* data =
      program.add_subcommand("data", "reading as training does it, from disk and from memory");
  CLI::App* decode = program.add_subcommand(
      "decode", "decoding whole dates on the GPU, step by step, against the reading threads");
  for (CLI::App* reading : {data, decode})
    add_reading_options(*reading, c);
  CLI::App* graphs = program.add_subcommand(
      "graph", "building, storing and loading graphs, with their numbers of edges");
  add_graph_options(*graphs, c);
  data->add_option("--cells", c.cells, "share of the cells that is read")
      ->check(CLI::Range(1e-6, 1.0));
  data->add_flag("--warm-only", c.warm_only, "no pass from disk");
  for (CLI::App* timed : {step, kernels, data}) {
    timed->add_option("--graph-cache", c.graph_cache, "folder that keeps graphs");
    timed
        ->add_option("--compare", c.compare,
                     "file of earlier results: fail if a case takes 10 % more time (a kernel or "
                     "reading 25 %) "
                     "or 1 % more memory")
        ->check(CLI::ExistingFile);
  }
  const std::vector<Command> commands{{step, run_steps},      {comm, run_comm},
                                      {kernels, run_kernels}, {data, run_data},
                                      {decode, run_decode},   {graphs, run_graphs}};
  for (const Command& any : commands) {
    any.app->add_option("--device", c.device, "auto, cpu or cuda");
    any.app->add_option("--threads", c.threads, "CPU threads; 0: all")->check(app::at_least(0));
    any.app->add_option("--json", c.json,
                        any.app == comm ? "file for the results, --machine of aifs-train --dry-run"
                                        : "file for the results");
  }
  return commands;
}

}  // namespace

}  // namespace aifs::bench

int main(int argc, char** argv) {
  aifs::open_standard_streams();
  aifs::bench::CommandLine c;
  for (int i = 1; i < argc; ++i)
    c.text += aifs::concat(i == 1 ? "aifs-bench " : " ", argv[i]);
  CLI::App program("Measures parts of aifs-train.", "aifs-bench");
  program.require_subcommand(1);
  const std::vector<aifs::bench::Command> commands = aifs::bench::add_commands(program, c);
  try {
    program.parse(argc, argv);
    if (c.threads > 0) at::set_num_threads(static_cast<int>(c.threads));
    const auto given = std::find_if(commands.begin(), commands.end(),
                                    [](const auto& command) { return command.app->parsed(); });
    return given->run(c);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? aifs::app::kSuccess : aifs::app::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "aifs-bench: %s\n", error.what());
    return aifs::app::kUsage;
  }
}
