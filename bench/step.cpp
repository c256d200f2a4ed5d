// SPDX-License-Identifier: Apache-2.0
#include "bench/step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/run/device.h"
#include "app/run/plan.h"
#include "app/run/profiler.h"
#include "bench/device_clock.h"
#include "bench/kernels.h"
#include "bench/roofline.h"
#include "bench/step_run.h"
#include "core/check.h"
#include "graph/edges/mesh_kinds.h"
#include "graph/nodes/tri_kinds.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

// Peak TFLOP/s of dense matrix products of an H100 or H200, by its data sheet.
double peak_tflops(train::Precision precision) {
  switch (precision) {
    case train::Precision::kBf16Mixed:
      return 989.0;
    case train::Precision::kTf32:
      return 495.0;
    default:
      return 67.0;
  }
}

// Operations of a step in matrix products, on one rank that has all of a sample; none where there
// is no plan of the configuration.
std::optional<plan::FlopPlan> operations(const app::Run& run) {
  app::RunConfig config = run.config();
  config.parallel = {};
  const data::VariableTable& variables = run.data().variables;
  const int64_t prognostic = variables.num_prognostic();
  app::PlanRequest request;
  request.ranks = 1;
  request.variables = {prognostic, variables.num_inputs() - prognostic,
                       variables.num_outputs() - prognostic};
  try {
    plan::StepInput input = run.graph().step_input(config, request);
    input.network.model = run.model();
    input.network.gpu = true;  // as tensor cores want the rows of 16-bit types
    return plan::plan_step(input, run.graph().division(input)).flops;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Adds operations, and the share of the GPUs' peak that those of a plain model are.
void add_operations(Json& json, const app::Run& run, const StepBenchOptions& options) {
  const std::optional<plan::FlopPlan> flops = operations(run);
  if (!flops) return;
  const double plain = 1e-12 * flops->useful_step / (options.forward_only ? 3.0 : 1.0);
  json["tflop"] = plain;
  if (!options.forward_only) json["tflop_executed"] = 1e-12 * flops->executed_step;
  if (!options.device.is_cuda()) return;
  const parallel::MeshSizes& sizes = options.mesh.sizes();
  const double gpus = static_cast<double>(sizes.model * sizes.tensor);
  json["mfu"] = plain / (1e-3 * json["step_ms"].get<double>()) /
                (gpus * peak_tflops(run.config().train.precision));
}

// Describes what two computations of the same network may differ by. Measured for Anemoi's own
// bfloat16 against its fp32 (reference data, mixed_precision): loss 3e-4, gradients 2 %, cosine
// 0.9998.
struct Limits {
  double loss_relative, gradient_rms, gradient_cosine;
};
Limits limits_of(train::Precision precision) {
  switch (precision) {
    case train::Precision::kBf16Mixed:
      return {2e-3, 5e-2, 0.999};
    case train::Precision::kTf32:
      return {5e-4, 1e-2, 0.9999};
    default:
      return {1e-5, 1e-3, 0.99999};
  }
}

// MB of the largest of several buckets of gradients; 0: all are reduced at once.
double largest_bucket_mb(StepRun& run) {
  const auto& buckets = run.step().shards().layout().buckets();
  if (buckets.size() == 1) return 0.0;
  int64_t largest = 0;
  for (const train::ShardBucket& bucket : buckets)
    largest = std::max(largest, bucket.size());
  return 1e-6 *
         static_cast<double>(largest * run.run().parameters().flat_gradients().element_size());
}

// Tells which work a result is of (bench/compare.h).
Json describe(StepRun& step_run, const StepBenchOptions& options) {
  const app::Run& run = step_run.run();
  const app::RunConfig& config = run.config();
  const model::ModelOptions& model = run.model();
  const train::ReductionOptions& gradients = config.parallel.gradients;
  const bool reduced = !options.forward_only && options.mesh.alike().size() > 1;
  Json bucket_mb = 0.0;
  if (reduced && gradients.overlap)
    bucket_mb = gradients.bucket_mb > 0.0 ? Json(gradients.bucket_mb) : Json("auto");
  const graph::Graph& graph = run.graph().graph;
  Json json{{"case", options.name},
            {"mode", options.forward_only ? "forward" : "step"},
            {"recompute_mappers", enum_name(model.encoder.recompute)},
            {"recompute_processor", enum_name(model.processor.recompute)},
            {"mapper_chunks", model.decoder.chunks},
            {"encoder_chunks", model.encoder.chunks},
            {"groups", model.processor.chunks},
            {"edge_ranges", model.processor.edge_ranges},
            {"offload", model.processor.offload},
            {"rollout", step_run.rollout()},
            {"accumulate_batches", config.train.accumulate_batches},
            {"kernels", enum_name(model.kernels)},
            {"cuda_graph", !options.forward_only && step_run.step().is_recorded()},
            {"ranks", {{"model", options.mesh.sizes().model}, {"data", options.mesh.sizes().data}}},
            {"bucket_mb", bucket_mb},
            {"largest_bucket_mb", reduced ? largest_bucket_mb(step_run) : 0.0},
            {"parameters", run.parameters().num_trainable()}};
  for (const graph::NodeSet& nodes : graph.node_sets)
    json["nodes"].push_back(nodes.num_nodes());
  for (const graph::EdgeSet& edges : graph.edge_sets)
    json["edges"].push_back(run.graph().num_edges(edges.source, edges.target));
  return json;
}

// Times one more step by kernel.
void add_profile(Json& json, const std::function<void()>& step, const StepBenchOptions& options) {
  app::start_profile();
  options.mesh.world().barrier();  // which takes one rank longer than another
  step();
  app::wait_for(options.device);
  const bool is_first = options.mesh.world().rank() == 0;
  const app::GpuProfile profile = app::end_profile(is_first ? options.trace : "");
  if (!options.device.is_cuda()) return;
  json["gpu_busy_ms"] = profile.busy_ms;
  json["gpu_span_ms"] = profile.span_ms;
  for (const app::KernelTime& kernel : profile.kernels) {
    json["kernel_times"].push_back(
        {{"name", kernel.name}, {"ms", kernel.ms}, {"calls", kernel.calls}});
  }
  std::printf("%s\n", app::kernel_table(profile).c_str());
}

// Counts what the kernels of one more step, launched one by one, have to do at least.
void add_rooflines(Json& json, const std::function<void()>& step, const StepBenchOptions& options) {
  const std::vector<WorkOfCall> calls = calls_of(step);
  for (const bool sustained : {false, true}) {
    const Roofline least = roofline(calls, measure_limits(options.device, sustained));
    std::printf("%s\n", least.table().c_str());
    Json& entry = json[sustained ? "roofline_sustained" : "roofline"] = least.to_json();
    entry["of_step"] = 1e3 * least.seconds() / json["step_ms"].get<double>();
  }
}

}  // namespace

Json time_steps(const app::RunConfig& config, const StepBenchOptions& options) {
  StepRun run(config, options.mesh, options.device);
  double first = 0.0, last = 0.0;
  const std::function<void()> step = [&] {
    if (options.forward_only) return run.forecast();
    last = run.train();
  };
  reset_peak_memory(options.device);  // steps that are recorded allocate nothing later
  for (int64_t i = 0; i < options.warm_up; ++i) {
    step();
    if (i == 0) first = last;
  }
  app::wait_for(options.device);
  DeviceClock clock(options.device);
  clock.mark();
  for (int64_t i = 0; i < options.steps; ++i) {
    step();
    clock.mark();
  }
  const std::vector<double> ms = clock.intervals_ms();
  const PeakMemory peak = peak_memory(options.device);
  // Not of the caching allocator.
  const double background_gib =
      static_cast<double>(run.step().reducer().background_bytes()) / (1 << 30);
  const at::Tensor most = at::full({1}, peak.allocated_gib + background_gib, at::kDouble);
  options.mesh.world().all_reduce(most, parallel::Reduction::kMax);
  Json json = describe(run, options);
  json["step_ms"] = quantile(ms, 0.5);
  json["spread"] = (quantile(ms, 0.95) - quantile(ms, 0.05)) / quantile(ms, 0.5);
  json["min_ms"] = quantile(ms, 0.0);
  json["steps"] = options.steps;
  json["peak_gib"] = most.item<double>();
  json["reserved_gib"] = peak.reserved_gib + background_gib;
  add_operations(json, run.run(), options);
  if (options.profile || !options.trace.empty()) add_profile(json, step, options);
  if (options.roofline) {
    run.step().stop_recording();  // both would not fit
    empty_memory_cache(options.device);
    add_rooflines(json, step, options);
  }
  if (!options.forward_only) {
    json["first_loss"] = first;
    json["last_loss"] = last;
  }
  return json;
}

bool can_check(const app::RunConfig& config) {
  return config.data.kind == data::SourceKind::kAnalytic && config.graph.grid != "dataset" &&
         config.parallel.sizes.tensor == 1 &&
         config.parallel.sharding.states == train::Sharding::kNone;
}

namespace {

app::RunConfig on_small_graph(app::RunConfig config) {
  config.graph.grid = "o16";
  config.graph.hidden.kind.set(graph::TriKind(2));
  // A window of attention must be smaller than the mesh.
  constexpr int64_t kHiddenNodes = 162;
  config.model.processor.window = std::min(config.model.processor.window, kHiddenNodes - 1);
  config.graph.processor.kind.set(graph::MultiScaleKind());
  config.graph.file = "";
  config.train.cuda_graph = train::DeviceGraphs::kOff;
  return config;
}

// Computes the same function of the same weights as plainly as possible.
app::RunConfig plain(app::RunConfig config) {
  config.train.precision = train::Precision::kFp32;
  config.train.rollout.recompute = false;
  config.parallel = {};
  model::ModelOptions& model = config.model;
  model.kernels = model::KernelChoice::kReference;
  model.memory_budget = 0.0;
  model.set_recompute(model::RecomputePolicy::kNone);
  for (model::BlockOptions* block : std::initializer_list<model::BlockOptions*>{
           &model.encoder, &model.processor, &model.decoder}) {
    block->chunks = block->edge_ranges = 1;
    block->offload = 0;
  }
  return config;
}

}  // namespace

Json check_equality(const app::RunConfig& config, const at::Device& device,
                    const parallel::ProcessMesh& mesh) {
  const app::RunConfig small = on_small_graph(config);
  const parallel::ProcessMesh one;
  const StepRun::Gradients expected = StepRun(plain(small), one, at::kCPU).gradients();
  const StepRun::Gradients got = StepRun(small, mesh, device).gradients();
  const double norm = expected.values.norm().item<double>();
  const double loss_relative = std::abs(got.loss - expected.loss) / expected.loss;
  const double rms = (got.values - expected.values).norm().item<double>() / norm;
  const double cosine =
      got.values.dot(expected.values).item<double>() / (norm * got.values.norm().item<double>());
  const Limits limits = limits_of(config.train.precision);
  const bool within = loss_relative <= limits.loss_relative && rms <= limits.gradient_rms &&
                      cosine >= limits.gradient_cosine;
  return {{"graph", "o16-tri2"},
          {"loss_fp32_cpu", expected.loss},
          {"loss", got.loss},
          {"loss_relative", loss_relative},
          {"gradient_rms", rms},
          {"gradient_cosine", cosine},
          {"limits", {limits.loss_relative, limits.gradient_rms, limits.gradient_cosine}},
          {"within", within}};
}

}  // namespace aifs::bench
