// SPDX-License-Identifier: Apache-2.0
#include "train/run_log.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/log.h"
#include "core/time.h"
#include "train/scores/named_scores.h"
#include "train/step_figures.h"

namespace aifs::train {

namespace {

std::unique_ptr<TensorBoardWriter> open_tensorboard(const fs::path& folder, int64_t resume_step) {
  try {
    return std::make_unique<TensorBoardWriter>(folder, resume_step);
  } catch (const Error& error) {
    log::warning("no TensorBoard files: ", error.what());
    return nullptr;
  }
}

std::unique_ptr<MlflowWriter> open_mlflow(const RunLogSetup& setup) {
  try {
    return std::make_unique<MlflowWriter>(MlflowRun{.store = setup.options.mlflow.dir,
                                                    .experiment = setup.options.mlflow.experiment,
                                                    .run_dir = setup.run_dir,
                                                    .config_json = setup.config_json,
                                                    .program_version = setup.program_version},
                                          setup.resume_step);
  } catch (const std::exception& error) {
    log::warning("no MLflow run: ", error.what());
    return nullptr;
  }
}

std::string names_of(const std::vector<int64_t>& outputs, const data::VariableTable& variables) {
  const std::vector<std::string> names = variables.output_names();
  std::string text;
  for (const int64_t v : outputs)
    text += concat(text.empty() ? "'" : ", '", names[static_cast<size_t>(v)], "'");
  return text;
}

// A line of metrics.jsonl as a row: rates are members of it.
nlohmann::ordered_json with_rates(nlohmann::ordered_json line) {
  if (const auto rates = line.find("rates"); rates != line.end()) {
    const nlohmann::ordered_json members = *rates;
    line.update(members);
  }
  return line;
}

bool are_finite(const std::vector<LeadTimeScores>& lead_times) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return std::all_of(lead_times.begin(), lead_times.end(), [&](const LeadTimeScores& scores) {
    return std::all_of(scores.rmse.begin(), scores.rmse.end(), finite);
  });
}

}  // namespace

RunLog::RunLog(const RunLogSetup& setup)
    : goodput_(setup.run_dir, setup.program_start),
      rates_(setup.operations),
      metrics_(setup.run_dir / "metrics.jsonl", setup.resume_step,
               [this](const nlohmann::ordered_json& line, bool stays) {
                 goodput_.add_former_step(line, stays);
               }),
      validation_(setup.run_dir / "validation.jsonl", setup.resume_step),
      flush_every_(setup.options.every_steps),
      progress_({.every_steps = setup.options.every_steps,
                 .bar = setup.options.progress_bar,
                 .first_step = setup.first_step,
                 .last_step = setup.last_step}) {
  const LogOptions& options = setup.options;
  if (options.csv) {
    metrics_csv_.emplace(setup.run_dir / "metrics.csv", step_columns(), setup.resume_step);
    validation_csv_.emplace(setup.run_dir / "validation.csv", score_columns(), setup.resume_step);
  }
  if (options.tensorboard)
    tensorboard_ = open_tensorboard(setup.run_dir / "tensorboard", setup.resume_step);
  if (!options.mlflow.dir.empty()) mlflow_ = open_mlflow(setup);
  if (setup.gpus) gpus_.emplace(*setup.gpus);
}

void RunLog::scalar(const std::string& tag, double value, int64_t step) {
  if (tensorboard_) tensorboard_->add_scalar(tag, value, step);
  if (mlflow_) mlflow_->add_scalar(tag, value, step);
}

void RunLog::flush() {
  if (tensorboard_) tensorboard_->flush();
  if (mlflow_) mlflow_->flush();
  if (metrics_csv_) metrics_csv_->flush();
  if (validation_csv_) validation_csv_->flush();
}

void RunLog::clear_progress() {
  progress_.clear();
  flush();
}

void RunLog::end(MlflowWriter::Status status) {
  flush();
  if (mlflow_) mlflow_->end(status);
}

nlohmann::ordered_json RunLog::take_rates() {
  nlohmann::ordered_json rates = rates_.take();
  rates["sustained_samples_per_s"] = goodput_.samples_per_s();
  rates["goodput"] = goodput_.share();
  return rates;
}

void RunLog::add_gpus(nlohmann::ordered_json& line) {
  if (!gpus_) return;
  nlohmann::ordered_json figures = gpus_->figures();
  if (figures.is_null()) return;
  line["gpus"] = std::move(figures);
  for (const std::string& warning : gpus_->take_warnings()) {
    clear_progress();
    log::warning(warning);
  }
}

void RunLog::write_step(nlohmann::ordered_json line) {
  const auto step = line.at("step").get<int64_t>();
  const auto loss = line.at("loss").get<double>(), lr = line.at("lr").get<double>();
  goodput_.add_step(line);
  rates_.add(line);
  if (step % flush_every_ == 0) {
    const nlohmann::ordered_json rates = take_rates();
    for (const auto& [name, value] : rates.items())
      scalar("rates/" + name, value.get<double>(), step);
    line["rates"] = rates;
    add_gpus(line);
  }
  metrics_.write(line);
  if (metrics_csv_) metrics_csv_->add(with_rates(line));
  scalar("train/loss", loss, step);
  scalar("train/lr", lr, step);
  scalar("train/step_s", line.at("step_s").get<double>(), step);
  for (const char* figure : {"gradient_norm", "loss_scale", "data_wait_s"}) {
    if (const auto found = line.find(figure); found != line.end())
      scalar(concat("train/", figure), found->get<double>(), step);
  }
  if (tensorboard_) tensorboard_->flush();
  if (step % flush_every_ == 0) flush();
  char text[96];
  std::snprintf(text, sizeof text, "loss %.5f  lr %.3e", loss, lr);
  progress_.update(step, text);
}

void RunLog::write_curves(const nlohmann::ordered_json& line, int64_t step) {
  constexpr size_t kMost = 1000;  // more curves than that nobody looks at
  const std::vector<NamedScore> scores = named_scores(line);
  for (const NamedScore& score : scores) {
    const std::string& name = score.name;
    const bool is_mean = name == "loss" || name.find("mean_ratio_") != std::string::npos;
    if (is_mean || scores.size() <= kMost) scalar("validation/" + name, score.value, step);
  }
  if (validation_csv_) {
    for (const nlohmann::ordered_json& row : score_rows(line))
      validation_csv_->add(row);
  }
  flush();
}

std::string RunLog::ratios_text(const DatasetScores& dataset, bool is_only) {
  std::string summary;
  for (const LeadTimeScores& scores : dataset.lead_times) {
    char text[96];
    std::snprintf(text, sizeof text, "  %s %.3f", format_lead_time(scores.lead_time_s).c_str(),
                  mean_ratio(scores, *dataset.variables));
    summary += text;
    for (const RegionScores& region : scores.regions) {
      std::snprintf(text, sizeof text, "%s%s %.3f",
                    &region == &scores.regions.front() ? " (" : ", ", region.name.c_str(),
                    mean_ratio(region, *dataset.variables));
      summary += text;
    }
    if (!scores.regions.empty()) summary += ")";
    if (!scores.constant.empty() && constants_named_.insert(dataset.name).second) {
      log::warning(is_only ? "" : concat("dataset '", dataset.name, "': "),
                   names_of(scores.constant, *dataset.variables),
                   " did not change, as the dataset says or persistence shows: left out of the "
                   "mean ratios; name what never changes in data.forcing");
    }
  }
  return summary;
}

void RunLog::write_validation(LogPosition position, const ValidationResult& result,
                              const data::VariableTable& variables) {
  nlohmann::ordered_json line{{"step", position.step}, {"epoch", position.epoch}};
  if (!result.failure.empty()) {
    ++num_failed_validations_;
    line["failure"] = result.failure;
    validation_.write(line);
    log::error("the validation at step ", position.step, " failed: ", result.failure);
    return;
  }
  line.update(to_json(result, variables));
  validation_.write(line);
  write_curves(line, position.step);
  const std::vector<DatasetScores> all = all_scores(result, variables);
  bool finite = std::isfinite(result.loss);
  std::string summary;
  for (const DatasetScores& d : all) {
    if (all.size() > 1) summary += concat("  ", d.name);
    summary += ratios_text(d, all.size() == 1);
    finite = finite && are_finite(d.lead_times);
  }
  if (!finite) {
    log::warning("forecasts of the validation at step ", position.step,
                 " are not finite, though its data are sound: they run away");
  }
  const std::string horizon =
      result.rollout > 1 ? concat(" over ", result.rollout, " forecast steps") : "";
  const std::string dates =
      result.loss_dates != result.num_dates ? concat(", the loss ", result.loss_dates) : "";
  log::info("validation at step ", position.step, ": loss ", result.loss, horizon,
            ", RMSE / persistence", summary, "  (", result.num_dates, " dates", dates, ")");
}

}  // namespace aifs::train
