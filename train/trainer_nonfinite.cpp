// SPDX-License-Identifier: Apache-2.0
// What the trainer says, keeps and does when a number is not finite.
#include <ATen/ATen.h>

#include "core/check.h"
#include "core/log.h"
#include "core/time.h"
#include "train/trainer.h"

namespace aifs::train {

std::string Trainer::find_nonfinite(const data::Batch& batch, int64_t rollout) const {
  const at::NoGradGuard no_grad;
  std::string found = first_bad_weight(parts_.parameters);
  const data::DatasetInfo& info = parts_.source.dataset->info();
  const auto own = [&](const std::vector<double>& all) {
    const data::NodeRange& nodes = parts_.loading.nodes;
    return std::span(all).subspan(static_cast<size_t>(nodes.begin),
                                  static_cast<size_t>(nodes.size()));
  };
  FieldPlaces places{info.variables, own(info.latitudes_deg), own(info.longitudes_deg),
                     parts_.loading.nodes.begin};
  const auto note = [&](const std::string& text) {
    if (!text.empty()) found += (found.empty() ? "" : "\n") + text;
  };
  note(first_bad_value(batch.values, "batch", places));
  places.variables = parts_.variables.output_names();
  const at::Tensor values = values_of(batch);
  seed_noise();
  note(first_bad_operation(parts_.parameters, [&] {
    forecaster_.run(values, rollout, [&](const ForecastStep& step) {
      note(first_bad_value(step.prediction.to(at::kCPU),
                           concat("prediction of forecast step ", step.step + 1), places));
    });
  }));
  return found;
}

NonfiniteReport Trainer::describe_nonfinite(const std::string& what, int64_t rollout) const {
  std::string dates;
  for (const int64_t row : batch_.anchors) {
    const auto& all = parts_.source.dataset->info().dates_s;
    dates += concat(dates.empty() ? "" : ", ", format_date(all[static_cast<size_t>(row)]));
  }
  const int rank = parts_.mesh.world().rank();
  std::string text = concat("step ", state_.step + 1, " (epoch ", batch_place_[0], ", rank ", rank,
                            ", sample of ", dates, "): ", what);
  const auto note = [&](const std::string& more) {
    if (!more.empty()) text += "\n" + more;
  };
  NonfiniteReport report;
  if (const auto input = bad_input(rollout)) {
    note(input->text);
    report.input_is_bad = true;
    report.hint = input->hint;
  }
  note(first_bad_gradient(parts_.parameters, own_parts()));
  note(find_nonfinite(batch_, rollout));
  const fs::path folder =
      options_.run_dir / concat("nonfinite-step-", state_.step + 1, "-rank-", rank);
  try {
    write_dump(folder, batch_, text);
    note(concat("the batch is in '", folder.string(), "'"));
  } catch (const Error& error) {
    note(concat("the batch could not be written: ", error.what()));
  }
  report.text = text;
  return report;
}

std::optional<data::BadInput> Trainer::bad_input(int64_t rollout) const {
  std::vector<int64_t> rows;
  for (const int64_t anchor : batch_.anchors) {
    for (const int64_t offset : parts_.window.offsets(rollout))
      rows.push_back(anchor + offset);
  }
  try {
    return data::first_bad_input(*parts_.source.dataset, parts_.loading.nodes, rows);
  } catch (const Error& error) {
    log::warning("the input could not be read again: ", error.what());
    return std::nullopt;
  }
}

void Trainer::skip_or_fail(const NonfiniteReport& report) {
  const std::string found = report.text.empty()
                                ? concat("step ", state_.step + 1, " (epoch ", batch_place_[0],
                                         "): a loss of another rank is not finite")
                                : report.text;
  if (options_.train.on_nonfinite == OnNonfinite::kSkip &&
      skipped_in_a_row_ < options_.train.max_skipped_steps) {
    if (!report.text.empty()) log::warning(found, "\nthe step is skipped");
    return;
  }
  if (parallel::on_any_rank(parts_.mesh.world(), report.input_is_bad)) {
    state_.batch_in_epoch = step_first_batch_;
    save_before_error();
    throw NumericalError(found, report.hint);
  }
  throw NumericalError(found,
                       last_checkpoint_step_ >= 0
                           ? concat("the last checkpoint is of step ", last_checkpoint_step_,
                                    "; resume from it with a smaller learning rate")
                           : std::string("try a smaller learning rate, or a longer warm-up"));
}

}  // namespace aifs::train
