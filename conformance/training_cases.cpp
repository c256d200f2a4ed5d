// SPDX-License-Identifier: Apache-2.0
// A whole training run: normalised batches in the order of the sampler, and the program's own steps
// (train/training_step.h) on them at the scheduled rate. Loss and rate of every step, weights after
// some. It is run again in mixed precision, and on a GPU where there is one, against the same
// losses.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>

#include "app/run/device.h"
#include "conformance/case_loss.h"
#include "conformance/cases.h"
#include "conformance/model_compare.h"
#include "conformance/tensors.h"
#include "data/loader/sampler.h"
#include "data/transforms/normaliser.h"
#include "train/training_step.h"

namespace aifs::conformance {

namespace {

// Limits of the reference data, on every device. Losses are relative, weights absolute. In mixed
// precision a forecast of several steps may be twice as far off with each, as outputs may in any.
constexpr int64_t kFirstSteps = 20;
constexpr double kFirstLosses = 1e-6, kLaterLosses = 5e-6, kLossesF64 = 1e-12;
constexpr double kWeights = 1e-4, kRate = 1e-12;

using train::Precision;

double loss_limit(Precision precision, int64_t step, int64_t rollout) {
  if (precision == Precision::kFp64) return kLossesF64;
  if (precision == Precision::kBf16Mixed)
    return widened(bf16_loss_limit(step), static_cast<size_t>(rollout - 1));
  return step < kFirstSteps ? kFirstLosses : kLaterLosses;
}

using Indices = std::vector<int64_t>;

// First times of the samples of every step; a batch may be short.
std::vector<Indices> stored_order(const SafetensorsFile& tensors) {
  const at::Tensor table = read_tensor(tensors, "first_time_of_each_sample", at::kLong);
  std::vector<Indices> steps;
  for (int64_t step = 0; step < table.size(0); ++step) {
    Indices& batch = steps.emplace_back();
    for (int64_t b = 0; b < table.size(1); ++b) {
      const auto first = table[step][b].item<int64_t>();
      if (first >= 0) batch.push_back(first);
    }
  }
  return steps;
}

// Returns such an order from seed, workers and groups.
std::vector<Indices> sampled_order(const Json& json, int64_t window, size_t num_steps) {
  const Json& sampling = json.at("sampling");
  data::SamplerOptions options;
  options.seed = sampling.at("base_seed").get<uint64_t>();
  options.batch_size = json.at("batch_size").get<int64_t>();
  options.num_groups = sampling.value("sample_groups", int64_t{1});
  options.workers = sampling.at("workers").get<int64_t>();
  options.reseed_every_epoch = !sampling.value("persistent_workers", true);
  const data::Sampler sampler(
      data::usable_anchors(json.at("times").get<int64_t>(), {}, Indices{0, window - 1}), options);
  std::vector<Indices> steps;
  for (int64_t epoch = 0; steps.size() < num_steps; ++epoch) {
    for (Indices& batch : sampler.epoch(epoch))
      steps.push_back(std::move(batch));
  }
  steps.resize(num_steps);
  return steps;
}

train::ScheduleOptions schedule_options(const Json& json) {
  const Json& schedule = json.at("schedule");
  const auto kind = schedule.at("kind").get<std::string>();
  const auto lr = json.at("optimizer").at("lr").get<double>();
  if (kind == "constant") return {.kind = train::ScheduleKind::kConstant, .lr = lr};
  if (!kind.starts_with("cosine")) throw NotSupported("schedule " + kind);
  return {.kind = train::ScheduleKind::kCosine,
          .lr = lr,
          .lr_min = schedule.at("lr_min").get<double>(),
          .warmup_steps = schedule.at("warmup_t").get<int64_t>(),
          .total_steps = schedule.at("t_initial").get<int64_t>()};
}

// "value 32", "norm 1.0".
void read_clip(const std::string& text, train::OptimizerOptions& options) {
  for (const auto& [kind, known] : EnumNames<train::ClipKind>::table) {
    if (!text.starts_with(known)) continue;
    const std::string limit = text.substr(std::string(known).size());
    options.clip = kind;
    options.clip_limit = limit.empty() ? 0.0 : std::stod(limit);
    return;
  }
  throw NotSupported("clip " + text);
}

train::AdamWOptions adamw_options(const Json& o) {
  if (o.at("kind") != "AdamW") throw NotSupported("optimizer " + o["kind"].get<std::string>());
  return {.beta1 = o.at("betas").at(0).get<double>(),
          .beta2 = o.at("betas").at(1).get<double>(),
          .eps = o.at("eps").get<double>(),
          .weight_decay = o.at("weight_decay").get<double>()};
}

train::OptimizerOptions optimizer_options(const Json& json) {
  const Json& optimizer = json.at("optimizer");
  train::OptimizerOptions options;
  options.adamw = adamw_options(optimizer);
  read_clip(optimizer.value("clip", std::string("none")), options);
  const std::string average = json.value("ema", std::string());
  const size_t at = average.find("decay ");
  if (at != std::string::npos) {
    options.average = {train::AverageKind::kExponential, std::stod(average.substr(at + 6))};
  }
  return options;
}

// The forecast steps of a sample, which stay the same in the whole run.
int64_t rollout_steps(const Json& json) {
  const int64_t steps = json.value("rollout_steps", int64_t{1});
  if (steps < 1) throw NotSupported(concat("rollout_steps ", steps));
  return steps;
}

// The stored fields after the normaliser of the case, (times, E, N, V); its tables are compared
// too.
at::Tensor normalised_fields(const Json& json, const SafetensorsFile& tensors,
                             const data::VariableTable& variables, Comparison& comparison) {
  const Json& normalizer = json.at("normalizer");  // of one dataset, which may be named
  data::NormaliserOptions options;
  config::read(options, normalizer.value("data", normalizer), "normalizer", {});
  data::Statistics statistics = statistics_of(tensors, "statistics/");
  const auto normaliser = data::Normaliser::create(variables.names(), statistics, options);
  const auto compare = [&](const char* name, const std::vector<float>& values) {
    comparison.add(
        name, max_difference(at::tensor(at::ArrayRef<float>(values)), read_tensor(tensors, name)),
        0.0);
  };
  compare("normalizer/mul", normaliser.mul);
  compare("normalizer/add", normaliser.add);
  const at::Tensor fields = read_tensor(tensors, "data_raw");
  normaliser.forward({fields.data_ptr<float>(), static_cast<size_t>(fields.numel())});
  return fields;
}

class TrainingRun {
 public:
  // `expected`: tensors of the reference in the precision of the run; null: it has losses only.
  TrainingRun(const CaseFile& file, const SafetensorsFile& tensors, const Expected* expected,
              Precision precision, at::Device device, Comparison& comparison)
      : json_(file.json),
        tensors_(tensors),
        expected_(expected),
        precision_(precision),
        device_(device),
        comparison_(comparison),
        model_(file, tensors, precision, device),
        dataset_(only_dataset(file.json)),
        rollout_(rollout_steps(file.json)),
        output_mask_(output_mask_of(file, tensors, model_.graph, dataset_)),
        fields_(normalised_fields(file.json, tensors, dataset_.variables, comparison)
                    .to(device, weight_type(precision))),
        schedule_(schedule_options(file.json)) {
    const auto& layout = model_.network->layout();
    train::StepOptions options{.optimizer = optimizer_options(file.json)};
    options.train.precision = precision;
    train::StepParts parts{.parameters = model_.parameters,
                           .network = *model_.network,
                           .datasets = {},
                           .window = {layout.times_in, layout.times_out},
                           .mesh = mesh_,
                           .device = device};
    parts.datasets.push_back({.variables = dataset_.variables,
                              .loss = case_loss(file.json, tensors, dataset_, loss_use()),
                              .output_mask = output_mask_});
    step_.emplace(options, parts);
    step_->begin();
  }

  // The losses of all steps, each before the update. `losses_f64`: the reference's, if it has them.
  std::vector<double> run(const std::vector<double>& losses_f64) {
    const std::vector<Indices> order = stored_order(tensors_);
    check_order(order);
    compare_scalers(json_, tensors_, dataset_, loss_use(), comparison_);
    if (expected_) compare_first_pass(order.at(0));
    const std::vector<double> expected =
        precision_ == Precision::kFp64 ? losses_f64 : tensors_.doubles("loss");
    const std::vector<double> rates = tensors_.doubles("lr");
    std::vector<double> losses;
    for (size_t step = 0; step < order.size(); ++step) {
      const auto finished = static_cast<int64_t>(step);
      const double rate = train::learning_rate(schedule_, finished);
      comparison_.add(concat("lr[", step, "]"), relative_difference(rate, rates.at(step)), kRate);
      losses.push_back(step_->run(finished, {batch_of(order[step])}, rollout_, rate).loss);
      // In fp32 the reference may be further from fp64 than the limit.
      const double own_error = precision_ == Precision::kFp32 && step < losses_f64.size()
                                   ? relative_difference(expected.at(step), losses_f64[step])
                                   : 0.0;
      comparison_.add(concat("loss[", step, "]"),
                      relative_difference(losses.back(), expected.at(step)),
                      loss_limit(precision_, finished, rollout_), own_error);
      if (expected_) compare_weights(finished + 1);
    }
    return losses;
  }

 private:
  static CaseDataset only_dataset(const Json& json) {
    std::vector<CaseDataset> datasets = datasets_of(json);
    if (datasets.size() != 1) throw NotSupported("a training run on several datasets");
    return datasets[0];
  }

  LossUse loss_use() const {
    return {.dtype = train::weight_type(precision_),
            .device = device_,
            .of_outputs = true,
            .nodes = model_.nodes_of(dataset_.name),
            .output_mask = output_mask_};
  }
  // The order of samples is that of the sampler, if the case says how it was drawn.
  void check_order(const std::vector<Indices>& order) {
    if (!json_.contains("sampling")) return;
    const auto& layout = model_.network->layout();
    const int64_t window = layout.times_in + rollout_ * layout.times_out;
    comparison_.require(sampled_order(json_, window, order.size()) == order,
                        "the sampler gives another order");
  }

  // All variables of the samples that start at these times.
  train::Batches batch_of(const Indices& first_times) const {
    const auto& layout = model_.network->layout();
    std::vector<at::Tensor> samples;
    for (const int64_t first : first_times)
      samples.push_back(fields_.narrow(0, first, layout.times_in + rollout_ * layout.times_out));
    data::Batch batch;
    batch.anchors = first_times;
    batch.values = at::stack(samples);
    return {batch};
  }

  // Forecast, losses and gradients of the first batch, before anything is learnt, where the case
  // has them.
  void compare_first_pass(const Indices& first_times) {
    const SafetensorsFile& stored = expected_->tensors();
    const ModelLimits& limits = precision_ == Precision::kFp64 ? kModelFp64 : kModelFp32;
    const train::Batches batch = batch_of(first_times);
    const train::StepPass pass{.rollout = rollout_};
    {
      const at::NoGradGuard no_grad;
      step_->forecast(step_->values_of(batch), pass, [&](const train::ForecastStep& s) {
        const auto step = static_cast<size_t>(s.step);
        for (const std::string& name : {concat("step", step, "/y_pred"), std::string("y_pred")}) {
          if (stored.contains(name) && (rollout_ == 1 || name != "y_pred"))
            compare_output(name, s.prediction, *expected_, widened(limits.output, step),
                           comparison_);
        }
      });
    }
    if (std::none_of(stored.names().begin(), stored.names().end(),
                     [](const std::string& name) { return name.starts_with("grad/"); }))
      return;
    step_->start(0);
    step_->run_pass(batch, pass);
    step_->end_passes();
    compare_gradients(model_.parameters, *expected_,
                      widened(limits.gradient, static_cast<size_t>(rollout_ - 1)),
                      /*of_model=*/false, comparison_);
  }

  // Weights stored as "after<step>/..." and averages stored as "ema<step>/...".
  void compare_weights(int64_t step) {
    const train::WeightAverage* average = step_->average();
    const std::string ema = concat("ema", step, "/");
    const bool is_double = precision_ == Precision::kFp64;
    const double limit = is_double ? kModelFp64.parameters : kWeights;
    compare_parameters(model_.parameters, *expected_, concat("after", step, "/"), limit, is_double,
                       comparison_);
    for (const model::Parameter& parameter : model_.parameters.entries()) {
      const std::string name = ema + parameter.name;
      if (!average || !parameter.trainable || !expected_->tensors().contains(name)) continue;
      const at::Tensor ours = average->values()
                                  .narrow(0, parameter.offset, parameter.tensor.numel())
                                  .view(parameter.tensor.sizes());
      comparison_.add(name, max_difference(ours.cpu(), read_tensor(expected_->tensors(), name)),
                      limit);
    }
  }

  const Json& json_;
  const SafetensorsFile& tensors_;
  const Expected* expected_;
  const Precision precision_;
  const at::Device device_;
  const parallel::ProcessMesh mesh_;  // of one rank
  Comparison& comparison_;
  CaseModel model_;
  const CaseDataset dataset_;
  const int64_t rollout_;
  const at::Tensor output_mask_;
  const at::Tensor fields_;
  const train::ScheduleOptions schedule_;
  std::optional<train::TrainingStep> step_;
};

// Runs a case in one precision. Mixed precision is compared with the losses in fp32.
std::vector<double> run_in(Precision precision, const CaseFile& file, at::Device device,
                           Comparison& comparison) {
  app::set_arithmetic(precision, device);
  const SafetensorsFile tensors = file.tensors();
  std::optional<SafetensorsFile> twin;
  if (file.f64_path()) twin.emplace(*file.f64_path());
  std::optional<Expected> expected;
  if (precision == Precision::kFp32) expected.emplace(tensors, twin ? &*twin : nullptr);
  if (precision == Precision::kFp64 && twin) expected.emplace(*twin);
  const std::vector<double> losses_f64 = twin && twin->contains("loss") ? twin->doubles("loss")
                                         : tensors.contains("loss_f64")
                                             ? tensors.doubles("loss_f64")
                                             : std::vector<double>();
  if (precision == Precision::kFp64 && losses_f64.empty())
    throw NotUnderstood("the case has no losses in fp64");
  return TrainingRun(file, tensors, expected ? &*expected : nullptr, precision, device, comparison)
      .run(losses_f64);
}

}  // namespace

void run_training_case(const CaseFile& file, Report& report) {
  std::vector<at::Device> devices{at::kCPU};
  const at::Device found = app::choose_device(app::DeviceChoice::kAuto, 0);
  if (found.is_cuda()) devices.push_back(found);
  for (const at::Device& device : devices) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16Mixed, Precision::kFp64}) {
      const std::string name =
          concat(file.name, ".", enum_name(precision), device.is_cuda() ? ".cuda" : "");
      report.run("training run", name, [&](Comparison& comparison) {
        report.keep(name, run_in(precision, file, device, comparison));
      });
    }
  }
}

}  // namespace aifs::conformance
