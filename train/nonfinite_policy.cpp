// SPDX-License-Identifier: Apache-2.0
#include "train/nonfinite_policy.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "core/check.h"
#include "core/log.h"
#include "core/time.h"
#include "train/error_text.h"

namespace aifs::train {

std::string NonfinitePolicy::of_dataset(size_t dataset) const {
  return setup_.datasets.size() == 1 ? "" : concat(" of '", setup_.datasets[dataset].name, "'");
}

std::string NonfinitePolicy::find(const Batches& batch, const StepFigures& figures) const {
  const at::NoGradGuard no_grad;
  std::string found = first_bad_weight(setup_.parameters);
  const auto places = [&](size_t d, const std::vector<std::string>& variables) {
    const data::NodeRange& nodes = setup_.datasets[d].loading.nodes;
    const auto own = [&](const std::vector<double>& all) {
      return std::span(all).subspan(static_cast<size_t>(nodes.begin),
                                    static_cast<size_t>(nodes.size()));
    };
    const data::DatasetInfo& info = setup_.datasets[d].info();
    return FieldPlaces{variables, own(info.latitudes_deg), own(info.longitudes_deg), nodes.begin};
  };
  const auto note = [&](const std::string& text) {
    if (!text.empty()) found += (found.empty() ? "" : "\n") + text;
  };
  for (size_t d = 0; d < setup_.datasets.size(); ++d) {
    note(first_bad_value(batch[d].values, "batch" + of_dataset(d),
                         places(d, setup_.datasets[d].info().variables)));
  }
  const std::vector<at::Tensor> values = setup_.step.values_of(batch);
  const auto forecast = [&] {
    setup_.step.forecast(values, figures.pass(/*last=*/true), [&](const ForecastStep& step) {
      const size_t d = step.dataset;
      note(first_bad_value(step.prediction.to(at::kCPU),
                           concat("prediction", of_dataset(d), " of forecast step ", step.step + 1),
                           places(d, setup_.datasets[d].variables.output_names())));
    });
  };
  // Ranks of a sample meet in it: no known work, but progress.
  note(first_bad_operation(setup_.parameters, forecast, [&] {
    setup_.mesh.world().moves_on("looking for the first operation that is not finite");
  }));
  return found;
}

NonfiniteReport NonfinitePolicy::describe(const std::string& what, const Batches& batch,
                                          const StepFigures& figures,
                                          const LoopState& state) const {
  std::string dates;
  for (const int64_t row : batch[0].anchors) {
    const auto& all = setup_.datasets[0].info().dates_s;
    dates += concat(dates.empty() ? "" : ", ", format_date(all[static_cast<size_t>(row)]));
  }
  parallel::Communicator& world = setup_.mesh.world();
  std::string text = concat("step ", state.step + 1, " (epoch ", figures.place[0], ", rank ",
                            world.rank(), ", sample of ", dates, "): ", what);
  const auto note = [&](const std::string& more) {
    if (!more.empty()) text += "\n" + more;
  };
  NonfiniteReport report;
  {
    const std::shared_ptr<void> work = world.at_work("reading a batch that is not finite again");
    if (const auto input = bad_input(batch, figures.rollout)) {
      note(input->text);
      report.input_is_bad = true;
      report.hint = input->hint;
    }
    note(first_bad_gradient(setup_.parameters, setup_.step.own_parts()));
  }
  try {
    note(find(batch, figures));
  } catch (const std::exception& error) {
    if (!setup_.step.works_alone()) throw;
    note(concat("the network could not be run again: ", error_text(error)));
  }
  note(dump(batch, text, state.step + 1));
  report.text = text;
  return report;
}

std::string NonfinitePolicy::dump(const Batches& batch, const std::string& text,
                                  int64_t step) const {
  parallel::Communicator& world = setup_.mesh.world();
  const std::shared_ptr<void> work = world.at_work("writing a batch that is not finite");
  const fs::path folder = setup_.run_dir / concat("nonfinite-step-", step, "-rank-", world.rank());
  try {
    write_dump(folder, batch[0], text);
    for (size_t d = 1; d < setup_.datasets.size(); ++d)
      write_dump(folder / setup_.datasets[d].name, batch[d], text);
    return concat("the batch is in '", folder.string(), "'");
  } catch (const std::exception& error) {
    return concat("the batch could not be written: ", error_text(error));
  }
}

std::optional<data::BadInput> NonfinitePolicy::bad_input(const Batches& batch,
                                                         int64_t rollout) const {
  std::vector<int64_t> rows;
  for (const int64_t anchor : batch[0].anchors) {
    for (const int64_t offset : setup_.window.offsets(rollout))
      rows.push_back(anchor + offset);
  }
  try {
    for (const TrainingDataset& d : setup_.datasets) {
      if (auto bad = data::first_bad_input(*d.source.dataset, d.loading.nodes, rows)) return bad;
    }
    return std::nullopt;
  } catch (const std::exception& error) {
    log::warning("the input could not be read again: ", error_text(error));
    return std::nullopt;
  }
}

bool NonfinitePolicy::skips(const NonfiniteReport& report) const {
  if (setup_.choice != OnNonfinite::kSkip || skipped_in_a_row_ >= setup_.max_skipped_steps)
    return false;
  if (!report.text.empty()) log::warning(report.text, "\nthe step is skipped");
  return true;
}

std::string way_out(const SavedSteps& saved, int64_t step) {
  const std::string smaller = "try a smaller learning rate, or a longer warm-up";
  if (saved.after < 0) return smaller;
  const std::string resume = concat("the last checkpoint is of step ", saved.after,
                                    "; resume from it with a smaller learning rate");
  // One of the last step does not help where the weights have run away.
  if (saved.after == saved.before && saved.before < step) return resume;
  return concat(resume, "; where that fails at once, its weights have run away: ",
                saved.before >= 0 && saved.before < saved.after
                    ? concat("resume from the one of step ", saved.before, " by name")
                    : std::string("resume from an earlier one by name, or start again"));
}

}  // namespace aifs::train
