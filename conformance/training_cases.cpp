// SPDX-License-Identifier: Apache-2.0
// A whole training run: normalised batches in the order of the sampler, and the program's own steps
// (train/training_step.h) on them at the scheduled rate. Loss and rate of every step, weights after
// some. It is run again in mixed precision, and on a GPU where there is one, against the same
// losses.
#include <ATen/ATen.h>

#include "app/run/device.h"
#include "conformance/cases.h"
#include "conformance/limits.h"
#include "conformance/loss_file.h"
#include "conformance/model_setup.h"
#include "conformance/tensors.h"
#include "data/loader/sampler.h"
#include "data/transforms/normaliser.h"
#include "train/training_step.h"

namespace aifs::conformance {

namespace {

// Limits of the reference data, on every device. Losses are relative, weights absolute.
constexpr int64_t kFirstSteps = 20;
constexpr double kFirstLosses = 1e-6, kLaterLosses = 5e-6, kLossesF64 = 1e-12;
constexpr double kWeights = 1e-4, kRate = 1e-12;

using train::Precision;

double loss_limit(Precision precision, int64_t step) {
  if (precision == Precision::kFp64) return kLossesF64;
  if (precision == Precision::kBf16Mixed) return bf16_loss_limit(step);
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
  if (!kind.starts_with("cosine")) throw NotSupported("schedule " + kind);
  return {.kind = train::ScheduleKind::kCosine,
          .lr = json.at("optimizer").at("lr").get<double>(),
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

// A point-wise loss with the scalers of a case.
class CaseLoss : public train::Loss {
 public:
  explicit CaseLoss(train::PointwiseLoss loss) : loss_(std::move(loss)) {}
  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                        const train::LossCall& call) const override {
    return loss_(prediction, target, call.over_variables);
  }

 private:
  train::PointwiseLoss loss_;
};

// The default loss of a forecaster, unless the case has its own.
train::LossPtr loss_of(const Json& json, const SafetensorsFile& tensors, at::ScalarType dtype,
                       at::Device device) {
  const Json own = json.value("loss", Json::object());
  if (own.value("kind", std::string("MSE")) != "MSE") {
    throw NotSupported("loss " + own["kind"].get<std::string>());
  }
  const std::vector<int64_t>& shape = tensors.at("data_raw").shape;  // times, members, nodes, ...
  const AxisLengths lengths{json.value("times_out", int64_t{1}), shape.at(2),
                            variables_of(json).num_outputs()};
  const Json names = own.value(
      "scalers_in_order", Json{"pressure_level", "general_variable", "node_weights", "time_steps"});
  train::PointwiseLoss loss;
  for (const auto& name : names.get<std::vector<std::string>>()) {
    const at::Tensor values = read_tensor(tensors, "scaler/" + name, dtype).to(device);
    const bool of_batch = values.dim() == 3;
    loss.scalers.push_back(
        of_batch ? train::over_axes(name, values, {train::kBatch, train::kGrid, train::kVariable})
                 : train::over_axis(name, values, axis_of_scaler(name, values.size(0), lengths)));
  }
  return std::make_shared<CaseLoss>(std::move(loss));
}

// The stored fields after the normaliser of the case, (times, E, N, V); its tables are compared
// too.
at::Tensor normalised_fields(const Json& json, const SafetensorsFile& tensors,
                             const data::VariableTable& variables, Comparison& comparison) {
  data::NormaliserOptions options;
  config::read(options, json.at("normalizer"), "normalizer", {});
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
  TrainingRun(const CaseFile& file, const SafetensorsFile& tensors, Precision precision,
              at::Device device, Comparison& comparison)
      : tensors_(tensors),
        precision_(precision),
        comparison_(comparison),
        model_(file, tensors, precision, device),
        variables_(variables_of(file.json)),
        fields_(normalised_fields(file.json, tensors, variables_, comparison)
                    .to(device, weight_type(precision))),
        schedule_(schedule_options(file.json)) {
    const auto& layout = model_.network->layout();
    train::StepOptions options{.optimizer = optimizer_options(file.json)};
    options.train.precision = precision;
    step_.emplace(
        options,
        train::StepParts{
            .parameters = model_.parameters,
            .network = *model_.network,
            .datasets = {{variables_, loss_of(file.json, tensors, weight_type(precision), device)}},
            .window = {layout.times_in, layout.times_out},
            .mesh = mesh_,
            .device = device});
    step_->begin();
  }

  // The losses of all steps, each before the update.
  std::vector<double> run(const Json& json) {
    const std::vector<Indices> order = stored_order(tensors_);
    const auto& layout = model_.network->layout();
    comparison_.require(
        sampled_order(json, layout.times_in + layout.times_out, order.size()) == order,
        "the sampler gives another order");
    const std::vector<double> expected =
        tensors_.doubles(precision_ == Precision::kFp64 ? "loss_f64" : "loss");
    const std::vector<double> rates = tensors_.doubles("lr");
    const std::vector<double> twin =
        tensors_.contains("loss_f64") ? tensors_.doubles("loss_f64") : std::vector<double>();
    std::vector<double> losses;
    for (size_t step = 0; step < order.size(); ++step) {
      const auto finished = static_cast<int64_t>(step);
      const double rate = train::learning_rate(schedule_, finished);
      comparison_.add(concat("lr[", step, "]"), relative_difference(rate, rates.at(step)), kRate);
      losses.push_back(step_->run(finished, {batch_of(order[step])}, /*rollout=*/1, rate).loss);
      // In fp32 the reference may be further from fp64 than the limit.
      const double own_error = precision_ == Precision::kFp32 && step < twin.size()
                                   ? relative_difference(expected.at(step), twin[step])
                                   : 0.0;
      comparison_.add(concat("loss[", step, "]"),
                      relative_difference(losses.back(), expected.at(step)),
                      loss_limit(precision_, finished), own_error);
      if (precision_ == Precision::kFp32) compare_weights(finished + 1);
    }
    return losses;
  }

 private:
  // All variables of the samples that start at these times.
  train::Batches batch_of(const Indices& first_times) const {
    const auto& layout = model_.network->layout();
    std::vector<at::Tensor> samples;
    for (const int64_t first : first_times)
      samples.push_back(fields_.narrow(0, first, layout.times_in + layout.times_out));
    data::Batch batch;
    batch.anchors = first_times;
    batch.values = at::stack(samples);
    return {batch};
  }

  // Weights stored as "after<step>/..." and averages stored as "ema<step>/...".
  void compare_weights(int64_t step) {
    const train::WeightAverage* average = step_->average();
    const std::string after = concat("after", step, "/"), ema = concat("ema", step, "/");
    for (const model::Parameter& parameter : model_.parameters.entries()) {
      if (tensors_.contains(after + parameter.name)) {
        compare(after + parameter.name, parameter.tensor);
      }
      if (average && parameter.trainable && tensors_.contains(ema + parameter.name)) {
        compare(ema + parameter.name, average->values()
                                          .narrow(0, parameter.offset, parameter.tensor.numel())
                                          .view(parameter.tensor.sizes()));
      }
    }
  }

  void compare(const std::string& name, const at::Tensor& ours) {
    comparison_.add(name, max_difference(ours.cpu(), read_tensor(tensors_, name)), kWeights);
  }

  const SafetensorsFile& tensors_;
  const Precision precision_;
  const parallel::ProcessMesh mesh_;  // of one rank
  Comparison& comparison_;
  CaseModel model_;
  const data::VariableTable variables_;
  const at::Tensor fields_;
  const train::ScheduleOptions schedule_;
  std::optional<train::TrainingStep> step_;
};

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
        app::set_arithmetic(precision, device);
        const SafetensorsFile tensors = file.tensors();
        report.keep(name, TrainingRun(file, tensors, precision, device, comparison).run(file.json));
      });
    }
  }
}

}  // namespace aifs::conformance
