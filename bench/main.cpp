// SPDX-License-Identifier: Apache-2.0
// aifs-bench: measures, prints a line per case, and writes JSON that tools can compare.
#include <ATen/Parallel.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/device.h"
#include "app/exit_codes.h"
#include "app/versions.h"
#include "bench/comm.h"
#include "bench/compare.h"
#include "bench/step.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/version.h"
#include "parallel/process_mesh.h"
#include "parallel/runtime.h"
#include "parallel/versions.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;

struct CommandLine {
  std::vector<std::string> cases;
  std::string device = "auto", kernels = "auto", json, graph_cache, trace, compare, text;
  std::string recompute_mappers, recompute_processor;
  int64_t steps = 20, warm_up = 5, layers = 16, threads = 0;
  bool forward_only = false, no_check = false, no_time = false, profile = false;
  bool cuda_graph = false, overlap = false;
  int64_t mapper_chunks = 0, encoder_chunks = 0, groups = 0, edge_ranges = 0, offload = 0;
  int64_t rollout = 1, model_ranks = 1;
  int64_t smallest = 1 << 10, largest = 1 << 30;
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

// Runs one case; "error" instead of figures if it fails, so that the others still run.
Json run_case(const CommandLine& c, const std::string& name, const at::Device& device,
              const parallel::ProcessMesh& mesh) {
  if (c.forward_only && c.rollout > 1)
    throw ConfigError("--forward-only", "a forecast of several steps has a loss", "leave one out");
  if (c.cuda_graph && c.offload > 0)
    throw ConfigError("--cuda-graph", "copies to the host are not recorded", "leave --offload out");
  StepCase step_case = StepCase::parse(name);
  using model::RecomputePolicy;
  if (!c.recompute_mappers.empty()) {
    step_case.recompute_mappers =
        choice<RecomputePolicy>("--recompute-mappers", c.recompute_mappers);
  }
  if (!c.recompute_processor.empty()) {
    step_case.recompute_processor =
        choice<RecomputePolicy>("--recompute-processor", c.recompute_processor);
  }
  if (c.mapper_chunks > 0) step_case.mapper_chunks = c.mapper_chunks;
  if (c.encoder_chunks > 0) step_case.encoder_chunks = c.encoder_chunks;
  if (c.groups > 0) step_case.groups = c.groups;
  if (c.edge_ranges > 0) step_case.edge_ranges = c.edge_ranges;
  if (c.offload > 0) step_case.offload = c.offload;
  step_case.layers = c.layers;
  step_case.rollout = c.rollout;
  step_case.kernels = choice<model::KernelChoice>("--kernels", c.kernels);
  Json json{{"case", name}};
  try {
    if (!c.no_time) {
      json = time_steps(step_case, {.mesh = mesh,
                                    .device = device,
                                    .warm_up = c.warm_up,
                                    .steps = c.steps,
                                    .forward_only = c.forward_only,
                                    .capture = c.cuda_graph,
                                    .overlap = c.overlap,
                                    .graph_cache = c.graph_cache,
                                    .profile = c.profile,
                                    .trace = c.trace});
      std::printf("%-28s %-8s %9.2f ms  (spread %.1f %%)  peak %.2f GiB  %.1f TFLOP, MFU %.1f %%\n",
                  name.c_str(), c.forward_only ? "forward" : "step", json["step_ms"].get<double>(),
                  100.0 * json["spread"].get<double>(), json["peak_gib"].get<double>(),
                  json["tflop"].get<double>(), 100.0 * json.value("mfu", 0.0));
    }
    if (!c.no_check) {
      const Json& check = json["check"] = check_equality(step_case, device, mesh);
      std::printf("%-28s loss %.2e, gradients %.2e (cosine %.6f) from fp32 on the CPU: %s\n", "",
                  check["loss_relative"].get<double>(), check["gradient_rms"].get<double>(),
                  check["gradient_cosine"].get<double>(),
                  check["within"].get<bool>() ? "within bounds" : "OUT OF BOUNDS");
    }
  } catch (const std::exception& error) {
    const std::string text = error.what();
    json["error"] = text.substr(0, text.find('\n'));
    std::printf("%-28s failed: %s\n", name.c_str(), json["error"].get<std::string>().c_str());
  }
  std::fflush(stdout);
  json["card"] = app::device_name(device);
  json["commit"] = kCommit;
  json["command"] = c.text;
  json["versions"] = versions();
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
  const at::Device device = app::choose_device(choice<app::DeviceChoice>("--device", c.device),
                                               parallel::Runtime::local_rank());
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
  Json json = to_json(times, fits, runtime.world(), parallel::Runtime::local_size().value_or(0));
  json["card"] = app::device_name(device);
  json["commit"] = kCommit;
  json["command"] = c.text;
  json["versions"] = versions();
  if (!c.json.empty()) write_file_atomic(c.json, json.dump(2) + "\n");
  return app::kSuccess;
}

int run(const CommandLine& c) {
  if (c.threads > 0) at::set_num_threads(static_cast<int>(c.threads));
  parallel::Runtime runtime(/*timeout_s=*/300.0);
  const at::Device device = app::choose_device(choice<app::DeviceChoice>("--device", c.device),
                                               parallel::Runtime::local_rank());
  if (device.is_cuda() && runtime.size() > 1) runtime.use_nccl();
  const parallel::ProcessMesh mesh(
      runtime.world(),
      parallel::complete_sizes({.model = c.model_ranks}, runtime.size(), "--model-ranks"));
  if (!mesh.is_main()) std::freopen("/dev/null", "w", stdout);
  const Json earlier = c.compare.empty() ? Json() : Json::parse(read_file(c.compare));
  Json results = Json::array();
  bool sound = true;
  for (const std::string& name : c.cases) {
    results.push_back(run_case(c, name, device, mesh));
    const Json& result = results.back();
    sound = sound && !result.contains("error") &&
            (!result.contains("check") || result["check"]["within"].get<bool>());
    if (!c.json.empty() && mesh.is_main()) write_file_atomic(c.json, results.dump(2) + "\n");
  }
  if (!c.compare.empty()) {
    for (const std::string& line : slower_than(results, earlier)) {
      std::printf("%s\n", line.c_str());
      sound = false;
    }
  }
  return sound ? app::kSuccess : app::kNumerical;
}

}  // namespace

}  // namespace aifs::bench

int main(int argc, char** argv) {
  aifs::bench::CommandLine c;
  for (int i = 1; i < argc; ++i)
    c.text += aifs::concat(i == 1 ? "aifs-bench " : " ", argv[i]);
  CLI::App program("Measures parts of aifs-train.", "aifs-bench");
  program.require_subcommand(1);
  CLI::App* step = program.add_subcommand("step", "whole training steps on synthetic inputs");
  step->add_option("--case", c.cases,
                   "<gnn|gt|transformer>-<channels>-<grid>-tri<n>-<fp32|tf32|bf16>; repeatable")
      ->required()
      ->take_all()
      ->allow_extra_args(false);
  step->add_option("--device", c.device, "auto, cpu or cuda");
  step->add_option("--kernels", c.kernels, "auto, reference or fused");
  step->add_option("--steps", c.steps, "steps that are timed")->check(CLI::PositiveNumber);
  step->add_option("--warm-up", c.warm_up, "steps before them")->check(CLI::PositiveNumber);
  step->add_option("--layers", c.layers, "layers of the processor")->check(CLI::PositiveNumber);
  step->add_option("--threads", c.threads, "CPU threads; 0: all");
  step->add_option("--graph-cache", c.graph_cache, "folder that keeps graphs");
  step->add_option("--json", c.json, "file for the results");
  step->add_option(
          "--compare", c.compare,
          "file of earlier results: fail if a case takes 10 % more time or 1 % more memory")
      ->check(CLI::ExistingFile);
  step->add_flag("--profile", c.profile, "time by kernel of one more step");
  step->add_option("--trace", c.trace, "file for a timeline of that step");
  step->add_flag("--forward-only", c.forward_only, "time the forward pass without gradients");
  step->add_flag("--cuda-graph", c.cuda_graph, "launch loss and gradients as one CUDA graph");
  step->add_option("--model-ranks", c.model_ranks,
                   "ranks that share one sample; the others are replicas (start with mpirun)");
  step->add_flag("--overlap", c.overlap,
                 "reduce gradients of replicas during the backward pass, not at its end");
  step->add_option("--recompute-mappers", c.recompute_mappers,
                   "what encoder and decoder run again: none, embedding, mlp, block or full");
  step->add_option("--recompute-processor", c.recompute_processor, "the same of the processor");
  step->add_option("--mapper-chunks", c.mapper_chunks,
                   "parts of the decoder's targets, each run again under block");
  step->add_option("--encoder-chunks", c.encoder_chunks, "the same of the encoder's");
  step->add_option("--groups", c.groups, "of the processor's layers, under full");
  step->add_option("--edge-ranges", c.edge_ranges,
                   "ranges of targets in each layer of the processor, each run again");
  step->add_option("--offload", c.offload,
                   "blocks or groups of the processor that keep their inputs on the host");
  step->add_option("--rollout", c.rollout,
                   "steps of a forecast, each run again in the backward pass if there are several")
      ->check(CLI::PositiveNumber);
  step->add_flag("--no-check", c.no_check, "skip the comparison with fp32 on the CPU");
  step->add_flag("--no-time", c.no_time, "only compare");
  CLI::App* comm = program.add_subcommand(
      "comm", "every operation between ranks (start with mpirun), and a fit that plans can use");
  comm->add_option("--device", c.device, "auto, cpu or cuda");
  comm->add_option("--smallest", c.smallest, "bytes")->check(CLI::PositiveNumber);
  comm->add_option("--largest", c.largest, "bytes")->check(CLI::PositiveNumber);
  comm->add_option("--json", c.json, "file for the results, --machine of aifs-train --dry-run");
  try {
    program.parse(argc, argv);
    return comm->parsed() ? aifs::bench::run_comm(c) : aifs::bench::run(c);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? aifs::app::kSuccess : aifs::app::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "aifs-bench: %s\n", error.what());
    return aifs::app::kUsage;
  }
}
