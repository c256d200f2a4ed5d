// SPDX-License-Identifier: Apache-2.0
// What the trainer says, keeps and does when a number is not finite.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "core/check.h"
#include "core/log.h"
#include "core/time.h"
#include "train/error_text.h"
#include "train/trainer.h"

namespace aifs::train {

std::string Trainer::find_nonfinite(const Batches& batch, int64_t rollout) const {
  const at::NoGradGuard no_grad;
  std::string found = first_bad_weight(parts_.parameters);
  const auto places = [&](size_t d, const std::vector<std::string>& variables) {
    const data::NodeRange& nodes = datasets_[d].loading.nodes;
    const auto own = [&](const std::vector<double>& all) {
      return std::span(all).subspan(static_cast<size_t>(nodes.begin),
                                    static_cast<size_t>(nodes.size()));
    };
    return FieldPlaces{variables, own(info(d).latitudes_deg), own(info(d).longitudes_deg),
                       nodes.begin};
  };
  const auto note = [&](const std::string& text) {
    if (!text.empty()) found += (found.empty() ? "" : "\n") + text;
  };
  for (size_t d = 0; d < datasets_.size(); ++d)
    note(first_bad_value(batch[d].values, "batch" + of_dataset(d), places(d, info(d).variables)));
  const std::vector<at::Tensor> values = values_of(batch);
  seed_noise();
  const auto forecast = [&] {
    forecaster_.run(values, rollout, [&](const ForecastStep& step) {
      const size_t d = step.dataset;
      note(first_bad_value(step.prediction.to(at::kCPU),
                           concat("prediction", of_dataset(d), " of forecast step ", step.step + 1),
                           places(d, datasets_[d].variables.output_names())));
    });
  };
  // Ranks of a sample meet in it: no known work, but progress.
  note(first_bad_operation(parts_.parameters, forecast, [&] {
    parts_.mesh.world().moves_on("looking for the first operation that is not finite");
  }));
  return found;
}

NonfiniteReport Trainer::describe_nonfinite(const std::string& what, int64_t rollout) const {
  std::string dates;
  for (const int64_t row : batch_[0].anchors) {
    const auto& all = info().dates_s;
    dates += concat(dates.empty() ? "" : ", ", format_date(all[static_cast<size_t>(row)]));
  }
  const int rank = parts_.mesh.world().rank();
  std::string text = concat("step ", state_.step + 1, " (epoch ", batch_place_[0], ", rank ", rank,
                            ", sample of ", dates, "): ", what);
  const auto note = [&](const std::string& more) {
    if (!more.empty()) text += "\n" + more;
  };
  NonfiniteReport report;
  parallel::Communicator& world = parts_.mesh.world();
  {
    const std::shared_ptr<void> work = world.at_work("reading a batch that is not finite again");
    if (const auto input = bad_input(rollout)) {
      note(input->text);
      report.input_is_bad = true;
      report.hint = input->hint;
    }
    note(first_bad_gradient(parts_.parameters, own_parts()));
  }
  try {
    note(find_nonfinite(batch_, rollout));
  } catch (const std::exception& error) {
    if (!works_alone()) throw;
    note(concat("the network could not be run again: ", error_text(error)));
  }
  const std::shared_ptr<void> work = world.at_work("writing a batch that is not finite");
  const fs::path folder =
      options_.run_dir / concat("nonfinite-step-", state_.step + 1, "-rank-", rank);
  try {
    write_dump(folder, batch_[0], text);
    for (size_t d = 1; d < datasets_.size(); ++d)
      write_dump(folder / datasets_[d].name, batch_[d], text);
    note(concat("the batch is in '", folder.string(), "'"));
  } catch (const std::exception& error) {
    note(concat("the batch could not be written: ", error_text(error)));
  }
  report.text = text;
  return report;
}

std::optional<data::BadInput> Trainer::bad_input(int64_t rollout) const {
  std::vector<int64_t> rows;
  for (const int64_t anchor : batch_[0].anchors) {
    for (const int64_t offset : parts_.window.offsets(rollout))
      rows.push_back(anchor + offset);
  }
  try {
    for (const FurtherDataset& d : datasets_) {
      if (auto bad = data::first_bad_input(*d.source.dataset, d.loading.nodes, rows)) return bad;
    }
    return std::nullopt;
  } catch (const std::exception& error) {
    log::warning("the input could not be read again: ", error_text(error));
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
  const bool bad_input = parallel::on_any_rank(parts_.mesh.world(), report.input_is_bad);
  const int64_t last = last_checkpoint_step_;
  state_.batch_in_epoch = step_first_batch_;
  save_before_error();
  throw NumericalError(found, bad_input ? report.hint : way_out(last));
}

// After a loss or gradient that is not finite though the input is sound. `before`: the last
// checkpoint before that, or -1.
std::string Trainer::way_out(int64_t before) const {
  const std::string smaller = "try a smaller learning rate, or a longer warm-up";
  if (last_checkpoint_step_ < 0) return smaller;
  const std::string resume = concat("the last checkpoint is of step ", last_checkpoint_step_,
                                    "; resume from it with a smaller learning rate");
  // One of the last step does not help where the weights have run away.
  if (last_checkpoint_step_ == before && before < state_.step) return resume;
  return concat(resume, "; where that fails at once, its weights have run away: ",
                before >= 0 && before < last_checkpoint_step_
                    ? concat("resume from the one of step ", before, " by name")
                    : std::string("resume from an earlier one by name, or start again"));
}

}  // namespace aifs::train
