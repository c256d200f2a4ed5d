// SPDX-License-Identifier: Apache-2.0
#include "train/run_log.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/log.h"
#include "core/time.h"

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

std::string names_of(const std::vector<int64_t>& outputs, const data::VariableTable& variables) {
  const std::vector<std::string> names = variables.output_names();
  std::string text;
  for (const int64_t v : outputs)
    text += concat(text.empty() ? "'" : ", '", names[static_cast<size_t>(v)], "'");
  return text;
}

bool are_finite(const std::vector<LeadTimeScores>& lead_times) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return std::all_of(lead_times.begin(), lead_times.end(), [&](const LeadTimeScores& scores) {
    return std::all_of(scores.rmse.begin(), scores.rmse.end(), finite);
  });
}

}  // namespace

RunLog::RunLog(const fs::path& run_dir, const LogOptions& options, int64_t resume_step,
               int64_t first_step, int64_t last_step)
    : metrics_(run_dir / "metrics.jsonl", resume_step),
      validation_(run_dir / "validation.jsonl", resume_step),
      progress_({.every_steps = options.every_steps,
                 .bar = options.progress_bar,
                 .first_step = first_step,
                 .last_step = last_step}) {
  if (options.tensorboard) tensorboard_ = open_tensorboard(run_dir / "tensorboard", resume_step);
}

void RunLog::scalar(const std::string& tag, double value, int64_t step) {
  if (tensorboard_) tensorboard_->add_scalar(tag, value, step);
}

void RunLog::write_step(const nlohmann::ordered_json& line) {
  const auto step = line.at("step").get<int64_t>();
  const auto loss = line.at("loss").get<double>(), lr = line.at("lr").get<double>();
  metrics_.write(line);
  scalar("train/loss", loss, step);
  scalar("train/lr", lr, step);
  scalar("train/step_s", line.at("step_s").get<double>(), step);
  if (tensorboard_) tensorboard_->flush();
  char text[96];
  std::snprintf(text, sizeof text, "loss %.5f  lr %.3e", loss, lr);
  progress_.update(step, text);
}

// `place`: in front of the tags of TensorBoard.
std::string RunLog::write_ratios(const DatasetScores& dataset, const std::string& place,
                                 int64_t step) {
  std::string summary;
  for (const LeadTimeScores& scores : dataset.lead_times) {
    const std::string lead = format_lead_time(scores.lead_time_s);
    const double ratio = mean_ratio(scores, *dataset.variables);
    scalar("validation/" + place + "mean_ratio_" + lead, ratio, step);
    char text[96];
    std::snprintf(text, sizeof text, "  %s %.3f", lead.c_str(), ratio);
    summary += text;
    for (const RegionScores& region : scores.regions) {
      const double own = mean_ratio(region, *dataset.variables);
      scalar(concat("validation/", place, "mean_ratio_", region.name, "_", lead), own, step);
      std::snprintf(text, sizeof text, "%s%s %.3f",
                    &region == &scores.regions.front() ? " (" : ", ", region.name.c_str(), own);
      summary += text;
    }
    if (!scores.regions.empty()) summary += ")";
    if (!scores.constant.empty() && constants_named_.insert(dataset.name).second) {
      log::warning(place.empty() ? "" : concat("dataset '", dataset.name, "': "),
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
  scalar("validation/loss", result.loss, position.step);
  const std::vector<DatasetScores> all = all_scores(result, variables);
  bool finite = std::isfinite(result.loss);
  std::string summary;
  for (const DatasetScores& d : all) {
    if (all.size() > 1) summary += concat("  ", d.name);
    summary += write_ratios(d, all.size() > 1 ? d.name + "/" : "", position.step);
    finite = finite && are_finite(d.lead_times);
  }
  if (!finite) {
    log::warning("forecasts of the validation at step ", position.step,
                 " are not finite, though its data are sound: they run away");
  }
  if (tensorboard_) tensorboard_->flush();
  const std::string horizon =
      result.rollout > 1 ? concat(" over ", result.rollout, " forecast steps") : "";
  const std::string dates =
      result.loss_dates != result.num_dates ? concat(", the loss ", result.loss_dates) : "";
  log::info("validation at step ", position.step, ": loss ", result.loss, horizon,
            ", RMSE / persistence", summary, "  (", result.num_dates, " dates", dates, ")");
}

}  // namespace aifs::train
