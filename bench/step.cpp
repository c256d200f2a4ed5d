// SPDX-License-Identifier: Apache-2.0
#include "bench/step.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/run/device.h"
#include "app/run/profiler.h"
#include "bench/device_clock.h"
#include "bench/kernels.h"
#include "bench/roofline.h"
#include "core/check.h"
#include "train/device_graph.h"
#include "train/optim/optimizer.h"
#include "train/rollout.h"
#include "train/sharding/gradient_reducer.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kClip = 32.0, kStepLearningRate = 1e-5;

// The loss of a network as a function of its parameters: of a step, or the mean over a forecast as
// the trainer makes it.
class StepLoss {
 public:
  StepLoss(const StepCase& step_case, const StepNetwork& net, const graph::Graph& graph,
           const at::Device& device, const StepShares& shares)
      : network_(net.network),
        loss_(step_loss(graph, device, shares)),
        rollout_(step_case.rollout),
        forecaster_(net.network, step_variables(), {}, device,
                    {.recompute_steps = step_case.recompute_steps}) {
    const int64_t num_nodes = graph.nodes("data").num_nodes();
    if (rollout_ == 1) {
      fields_ = step_fields(num_nodes, device, shares);
    } else {
      batch_ = forecast_batch(num_nodes, rollout_, device, shares);
    }
  }

  int64_t rollout() const { return rollout_; }
  at::Tensor forward() const { return network_.forward(fields_.input); }  // of a single step
  at::Tensor operator()() const {
    if (rollout_ == 1) return loss_(network_.forward(fields_.input), fields_.truth);
    at::Tensor sum;
    forecaster_.run(batch_, rollout_, [&](const train::ForecastStep& step) {
      const at::Tensor value = loss_(step.prediction, step.truth);
      sum = sum.defined() ? sum + value : value;
    });
    return sum / static_cast<double>(rollout_);
  }

 private:
  const model::EncoderProcessorDecoder& network_;
  train::PointwiseLoss loss_;
  int64_t rollout_;
  train::Forecaster forecaster_;
  StepFields fields_;  // of a single step
  at::Tensor batch_;   // of a forecast
};

// One training step; the loss as a tensor, so that the host need not wait.
class Stepper {
 public:
  Stepper(StepNetwork& net, const StepLoss& loss, const parallel::ProcessMesh& mesh,
          std::optional<double> bucket_mb = {})
      : net_(net),
        loss_(loss),
        shards_(net.parameters, {}, size_of_buckets(net, bucket_mb), mesh),
        reducer_(net.parameters, shards_, {}, mesh, /*seed=*/0),
        optimizer_(net.parameters, {}) {}

  at::Tensor gradients() {
    reducer_.start_step(0);
    const at::Tensor value = loss_();
    reducer_.start_pass(/*kind=*/loss_.rollout(), /*last=*/true);
    value.backward();
    reducer_.end_pass();
    return value.detach();
  }

  void capture() {
    captured_ = std::make_unique<train::DeviceGraph>([this] { captured_loss_ = gradients(); });
  }

  // MB of the largest of several buckets; 0: all gradients are reduced at once.
  double bucket_mb() const {
    const auto& buckets = shards_.layout().buckets();
    if (buckets.size() == 1) return 0.0;
    int64_t largest = 0;
    for (const train::ShardBucket& bucket : buckets)
      largest = std::max(largest, bucket.size());
    return 1e-6 * static_cast<double>(largest * net_.parameters.flat_gradients().element_size());
  }

  double background_gib() const {
    return static_cast<double>(reducer_.background_bytes()) / (1 << 30);
  }

  // Kernels are launched one by one from now on.
  void release() { captured_.reset(); }

  at::Tensor step() {
    if (captured_) captured_->launch();
    const at::Tensor value = captured_ ? captured_loss_ : gradients();
    optimizer_.step(kStepLearningRate, kClip);
    return value;
  }

 private:
  static double size_of_buckets(const StepNetwork& net, std::optional<double> bucket_mb) {
    const train::ReductionOptions options{.overlap = bucket_mb != 0.0,
                                          .bucket_mb = bucket_mb.value_or(0.0)};
    return train::bucket_mb({}, options, /*one_host=*/true,
                            1e-6 * static_cast<double>(net.parameters.flat_gradients().nbytes()));
  }

  StepNetwork& net_;
  const StepLoss& loss_;
  train::ParameterShards shards_;
  train::GradientReducer reducer_;
  train::AdamW optimizer_;
  std::unique_ptr<train::DeviceGraph> captured_;  // the optimiser stays outside: its scalars change
  at::Tensor captured_loss_;
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

// TFLOP/s of dense matrix products that an H100 or H200 has on paper.
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

// Operations, and the share of the cards' peak that those of a plain model are.
void add_operations(Json& json, const StepCase& step_case, const graph::Graph& graph,
                    const StepBenchOptions& options) {
  const StepOperations operations = step_operations(step_case, graph);
  const double plain = 1e-12 * operations.plain / (options.forward_only ? 3.0 : 1.0);
  json["tflop"] = plain;
  if (!options.forward_only) json["tflop_executed"] = 1e-12 * operations.executed;
  if (!options.device.is_cuda()) return;
  const double cards = static_cast<double>(options.mesh.sizes().model);
  json["mfu"] =
      plain / (1e-3 * json["step_ms"].get<double>()) / (cards * peak_tflops(step_case.precision));
}

// What two computations of the same network may differ by. Measured for Anemoi's own bfloat16
// against its fp32 (reference data, mixed_precision): loss 3e-4, gradients 2 %, cosine 0.9998.
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

// Adds the kernel times of one more run, and writes a trace if one is wanted.
void add_profile(Json& json, const std::function<at::Tensor()>& run,
                 const StepBenchOptions& options) {
  app::start_profile();
  options.mesh.world().barrier();  // which takes one rank longer than another
  run();
  app::wait_for(options.device);
  const bool is_first = options.mesh.world().rank() == 0;
  const app::GpuProfile profile = app::end_profile(is_first ? options.trace : "");
  if (options.device.is_cuda()) {
    json["gpu_busy_ms"] = profile.busy_ms;
    json["gpu_span_ms"] = profile.span_ms;
    for (const app::KernelTime& kernel : profile.kernels) {
      json["kernel_times"].push_back(
          {{"name", kernel.name}, {"ms", kernel.ms}, {"calls", kernel.calls}});
    }
    std::printf("%s\n", app::kernel_table(profile).c_str());
  }
}

// Adds what the work of a run takes at least, at the highest and at the sustained clock.
void add_rooflines(Json& json, const std::function<at::Tensor()>& run, const at::Device& device) {
  empty_memory_cache(device);
  const std::vector<WorkOfCall> calls = calls_of([&] { run(); });
  for (const bool sustained : {false, true}) {
    const Roofline least = roofline(calls, measure_limits(device, sustained));
    std::printf("%s\n", least.table().c_str());
    Json& entry = json[sustained ? "roofline_sustained" : "roofline"] = least.to_json();
    entry["of_step"] = 1e3 * least.seconds() / json["step_ms"].get<double>();
  }
}

}  // namespace

Json time_steps(const StepCase& step_case, const StepBenchOptions& options) {
  app::set_arithmetic(step_case.precision, options.device);
  const graph::Graph graph = step_graph(step_case, options.graph_cache);
  const StepShares shares(options.mesh, step_case, graph);
  StepNetwork net(step_case, graph, options.device, shares);
  const StepLoss loss(step_case, net, graph, options.device, shares);
  Stepper stepper(net, loss, options.mesh, options.bucket_mb);
  const auto run = [&] {
    if (!options.forward_only) return stepper.step();
    const at::NoGradGuard no_grad;
    return loss.forward();
  };
  at::Tensor first, last;
  for (int64_t i = 0; i < options.warm_up; ++i) {
    last = run();
    if (i == 0) first = last;
  }
  app::wait_for(options.device);
  reset_peak_memory(options.device);
  const bool captured = options.capture && !options.forward_only && options.device.is_cuda();
  if (captured) stepper.capture();  // replays allocate nothing: the peak is that of this run
  DeviceClock clock(options.device);
  clock.mark();
  for (int64_t i = 0; i < options.steps; ++i) {
    last = run();
    clock.mark();
  }
  const std::vector<double> ms = clock.intervals_ms();
  const PeakMemory peak = peak_memory(options.device);
  const double background_gib = stepper.background_gib();  // not of the caching allocator
  const at::Tensor most = at::full({1}, peak.allocated_gib + background_gib, at::kDouble);
  options.mesh.world().all_reduce(most, parallel::Reduction::kMax);
  const bool reduced = !options.forward_only && options.mesh.alike().size() > 1;
  Json bucket_option = 0.0;
  if (reduced) bucket_option = options.bucket_mb ? Json(*options.bucket_mb) : Json("auto");
  Json json{{"case", step_case.name},
            {"mode", options.forward_only ? "forward" : "step"},
            {"recompute_mappers", enum_name(step_case.recompute_mappers)},
            {"recompute_processor", enum_name(step_case.recompute_processor)},
            {"mapper_chunks", step_case.mapper_chunks},
            {"encoder_chunks", step_case.encoder_chunks},
            {"groups", step_case.groups},
            {"edge_ranges", step_case.edge_ranges},
            {"offload", step_case.offload},
            {"rollout", step_case.rollout},
            {"kernels", enum_name(step_case.kernels)},
            {"cuda_graph", captured},
            {"step_ms", quantile(ms, 0.5)},
            {"spread", (quantile(ms, 0.95) - quantile(ms, 0.05)) / quantile(ms, 0.5)},
            {"min_ms", quantile(ms, 0.0)},
            {"steps", options.steps},
            {"peak_gib", most.item<double>()},
            {"ranks", {{"model", options.mesh.sizes().model}, {"data", options.mesh.sizes().data}}},
            {"bucket_mb", bucket_option},
            {"largest_bucket_mb", reduced ? stepper.bucket_mb() : 0.0},
            {"reserved_gib", peak.reserved_gib + background_gib},
            {"nodes", {graph.nodes("data").num_nodes(), graph.nodes("hidden").num_nodes()}},
            {"parameters", net.parameters.num_trainable()}};
  for (const auto& edges : graph.edge_sets)
    json["edges"].push_back(edges.num_edges());
  add_operations(json, step_case, graph, options);
  if (options.profile || !options.trace.empty()) add_profile(json, run, options);
  if (options.roofline) {
    stepper.release();  // both would not fit
    add_rooflines(json, run, options.device);
  }
  if (!options.forward_only) {
    json["first_loss"] = first.item<double>();
    json["last_loss"] = last.item<double>();
  }
  return json;
}

Json check_equality(const StepCase& step_case, const at::Device& device,
                    const parallel::ProcessMesh& mesh) {
  StepCase small = step_case, exact = step_case;
  small.grid = exact.grid = "o16";
  small.refinement = exact.refinement = 2;
  exact.precision = train::Precision::kFp32;
  exact.kernels = model::KernelChoice::kReference;
  exact.recompute_mappers = exact.recompute_processor = model::RecomputePolicy::kNone;
  exact.mapper_chunks = exact.encoder_chunks = exact.edge_ranges = 1;
  exact.offload = 0;
  exact.recompute_steps = false;
  const graph::Graph graph = step_graph(small, "");
  struct Result {
    double loss;
    at::Tensor gradients;
  };
  const auto compute = [&](const StepCase& which, const at::Device& where,
                           const parallel::ProcessMesh& ranks) -> Result {
    app::set_arithmetic(which.precision, where);
    const StepShares shares(ranks, which, graph);
    StepNetwork net(which, graph, where, shares);
    const StepLoss loss(which, net, graph, where, shares);
    const at::Tensor value = Stepper(net, loss, ranks).gradients();
    return {value.item<double>(), net.parameters.flat_gradients().cpu().to(at::kDouble)};
  };
  const parallel::ProcessMesh one;
  const Result expected = compute(exact, at::kCPU, one), got = compute(small, device, mesh);
  const double norm = expected.gradients.norm().item<double>();
  const double loss_relative = std::abs(got.loss - expected.loss) / expected.loss;
  const double rms = (got.gradients - expected.gradients).norm().item<double>() / norm;
  const double cosine = got.gradients.dot(expected.gradients).item<double>() /
                        (norm * got.gradients.norm().item<double>());
  const Limits limits = limits_of(step_case.precision);
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
