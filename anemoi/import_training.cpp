// SPDX-License-Identifier: Apache-2.0
// How long and how precisely is trained, rollouts, validation, ranks, checkpoints; and what has no
// effect here.
#include <algorithm>
#include <map>

#include "anemoi/sections.h"
#include "core/check.h"

namespace aifs::anemoi {

namespace {

// Optimiser steps of so many epochs, which `place` asks for, where these are cut short.
int64_t steps_of(const Translation& t, int64_t epochs, const Place& place) {
  const int64_t accumulated = t.accumulated_batches(), batches = *t.batches_per_epoch;
  return checked_product(epochs, batches / accumulated + (batches % accumulated > 0 ? 1 : 0),
                         place);
}

// Names of an option that counts epochs, and of the one that counts steps in its place.
struct EpochOption {
  const char* epochs;
  const char* steps;
};

// Sets an option that is counted in epochs, in optimiser steps where epochs are cut short. Returns
// true if it is in steps.
bool set_epochs(const Translation& t, const Section& out, const EpochOption& names, int64_t epochs,
                const Place& place) {
  const bool in_steps = t.batches_per_epoch && epochs > 0;
  if (in_steps) {
    out.set(names.steps, steps_of(t, epochs, place), place);
  } else {
    out.set(names.epochs, epochs, place);
  }
  return in_steps;
}

constexpr EpochOption kEvery{"every_epochs", "every_steps"};

void import_length(const Translation& t, const Section& train) {
  const Place training = t.root["training"];
  const Place steps = training["max_steps"], epochs = training["max_epochs"];
  // Anemoi has a default for what is not there; null is no limit.
  int64_t most = steps.is_given() ? std::max<int64_t>(0, steps.integer(0)) : 150'000;
  const int64_t most_epochs = std::max<int64_t>(0, epochs.integer(0));
  if (t.batches_per_epoch && most_epochs > 0) {
    const int64_t of_epochs = steps_of(t, most_epochs, epochs);
    most = most > 0 ? std::min(most, of_epochs) : of_epochs;
  } else if (most_epochs > 0) {
    train.set("max_epochs", most_epochs, epochs);
  }
  train.set("max_steps", most, steps);
  const Place accumulated = training["accum_grad_batches"];
  train.set("accumulate_batches", t.accumulated_batches(), accumulated);
  train.set("accumulation", "anemoi", accumulated);
}

void import_precision(const Translation& t, const Place& precision, const Section& train) {
  static const std::map<std::string, std::string> names{{"16-mixed", "fp16-mixed"},
                                                        {"bf16-mixed", "bf16-mixed"},
                                                        {"32", "tf32"},
                                                        {"32-true", "tf32"},
                                                        {"64", "fp64"},
                                                        {"64-true", "fp64"},
                                                        {"16", "fp16-mixed"},
                                                        {"bf16", "bf16-mixed"}};
  // Anemoi's default is 16-mixed; Lightning takes null for 32.
  const auto found = names.find(precision.text(precision.is_given() ? "32" : "16-mixed"));
  if (found == names.end()) {
    precision.not_honoured("there are 16-mixed, bf16-mixed, 32 and 64; this is bf16-mixed");
  }
  std::string name = found == names.end() ? "bf16-mixed" : found->second;
  if (name == "tf32" && t.hardware()["accelerator"].text("auto") == "cpu") name = "fp32";
  train.set("precision", name, precision);
  if (name == "tf32")
    precision.note("products are of tf32 on a GPU, as Anemoi asks of torch; fp32 is exact");
}

void import_rollout(const Translation& t, const Section& train) {
  const Place rollout = t.rollout();
  const Section out = train["rollout"];
  const Place increment = rollout["epoch_increment"], most = rollout.any_of({"maximum", "max"});
  const int64_t start = rollout["start"].integer(1);
  out.set("start", start, rollout["start"]);
  set_epochs(t, out, {"epoch_increment", "step_increment"}, increment.integer(0), increment);
  out.set("maximum", std::max(start, most.integer(1)), most);
}

// GPUs that make the members of one sample, beside those of a model: of ensembles only.
int64_t num_groups(const Translation& t) {
  return t.section("model").find("ensemble") ? t.groups_per_ensemble() : 1;
}

void import_validation(const Translation& t, const Section& train) {
  const Section out = train["validation"];
  const Place every = t.root["diagnostics"]["check_val_every_n_epoch"];
  if (set_epochs(t, out, kEvery, every.integer(1), every)) out.set(kEvery.epochs, 0, every);
  out.set("weights", "area");
  const Place task = t.root["task"]["validation_rollout"],
              loader = t.root["dataloader"]["validation_rollout"];
  const Place steps = task ? task : loader;
  if (steps) out.set("rollout", steps.integer(), steps);
  const Place limit = t.root["dataloader"]["limit_batches"]["validation"];
  if (!limit) return;
  if (is_whole_epoch(limit)) {
    limit.note("1.0 is all dates, as for Lightning; 1 would be one batch");
  } else if (limit.number() >= 1.0) {
    const int64_t samples = t.root["dataloader"]["batch_size"]["validation"].integer(1);
    const int64_t instances = std::max<int64_t>(
        1, t.num_gpus() / std::max<int64_t>(1, t.gpus_per_model()) / num_groups(t));
    const int64_t of_one = checked_product(limit.integer(), samples, limit);
    out.set("max_dates", checked_product(of_one, instances, limit), limit);
    limit.note("as many dates, but spread evenly over the period instead of its first ones");
  } else {
    limit.not_honoured("a share of the dates: name their number in train.validation.max_dates");
  }
}

void import_ranks(const Translation& t) {
  static const std::map<std::string, std::string> devices{
      {"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}, {"gpu", "cuda"}};
  const Place hardware = t.hardware();
  const Place accelerator = hardware["accelerator"];
  const auto found = devices.find(accelerator.text("auto"));
  if (found == devices.end()) accelerator.not_honoured("there are cpu and cuda");
  t.section("run").set("device", found == devices.end() ? "auto" : found->second, accelerator);
  const Place model = hardware["num_gpus_per_model"];
  if (t.has_several_datasets() && model.integer(1) > 1) {
    model.not_honoured("networks of several datasets are not divided yet");
  } else {
    t.section("parallel").set("model", model.integer(1), model);
  }
  const int64_t ranks = t.num_gpus() / num_groups(t);
  if (ranks > 1) {
    const Place nodes = hardware["num_gpus_per_node"];
    nodes.note(
        concat("start ", ranks, " ranks for the same batches: their number is not in the file"));
  }
  for (const char* key : {"num_gpus_per_node", "num_nodes", "num_gpus_per_ensemble"})
    hardware[key].mark();
}

void import_checkpoints(const Translation& t) {
  const Place diagnostics = t.root["diagnostics"], all = diagnostics["checkpoint"];
  const Section out = t.section("checkpoint");
  const bool enabled = diagnostics["enable_checkpointing"].boolean(true);
  int64_t keep = 0;  // all
  bool keeps_all = false;
  std::vector<Place> limits;
  const auto add = [&](const char* theirs, bool in_epochs) {
    const Place trigger = all[theirs];
    const Place every = trigger["save_frequency"], most = trigger["num_models_saved"];
    const int64_t number = enabled ? every.integer(0) : 0;
    most.mark();
    every.mark();
    if (number <= 0) return;
    if (in_epochs) {
      set_epochs(t, out, kEvery, number, every);
    } else {
      out.set(kEvery.steps, number, every);
    }
    if (most.integer(-1) > 0) {
      keep = std::max(keep, most.integer());
      limits.push_back(most);
    }
    keeps_all = keeps_all || most.integer(-1) < 0;
  };
  add("every_n_epochs", /*in_epochs=*/true);
  add("every_n_train_steps", /*in_epochs=*/false);
  out.set("keep", keeps_all ? 0 : keep, all);
  for (const Place& limit : limits) {
    if (keeps_all) limit.note("all checkpoints are kept, as those of another frequency have to be");
  }
  out.set("at_end", enabled, diagnostics["enable_checkpointing"]);
  const Place minutes = all["every_n_minutes"]["save_frequency"];
  if (minutes)
    minutes.note("checkpoints are counted in steps or epochs: set checkpoint.every_steps");
  all["every_n_minutes"]["num_models_saved"].mark();
}

// Callbacks that would change the training itself.
void import_callbacks(const Place& callbacks) {
  if (!callbacks.is_list()) return;
  for (const Place& callback : callbacks.elements()) {
    const std::string name = callback.class_name();
    if (name.find("EarlyStopping") != std::string::npos) {
      callback.not_honoured("training ends after its steps, epochs or minutes");
    } else {
      callback.no_effect("scores and logs are those of this program (train.validation)");
    }
  }
}

void import_start(const Translation& t) {
  const Place training = t.root["training"];
  const char* weights =
      "weights come from init.from: make a run of the checkpoint first, by aifs-train import";
  for (const char* key : {"run_id", "fork_run_id"})
    training[key].expect(nullptr, weights);
  for (const char* key : {"transfer_learning", "load_weights_only"})
    training[key].expect(false, weights);
  const Place input = t.root["system"]["input"], old = t.root["hardware"]["files"];
  input["warm_start"].expect(nullptr, weights);
  old["warm_start"].expect(nullptr, weights);
  training["update_ds_stats_on_ckpt_load"].no_effect("data.tables says whose statistics count");
  training["check_variables_compatibility"].no_effect("there are no weights to compare with");
}

void import_method(const Place& training) {
  const Place method = training["method"]["_target_"], task = training["model_task"];
  for (const Place& place : {method, task}) {
    const std::string name = last_part(place.text(""));
    const bool known = name.empty() || name == "SingleTraining" || name == "EnsembleTraining" ||
                       name == "GraphForecaster" || name == "GraphEnsForecaster";
    if (!known) place.not_honoured("there is no such method; this trains forecasts");
  }
  training["transport"].not_honoured("there are no diffusion and transport models");
  const Place strategy = training["strategy"];
  const std::string name = strategy.class_name();
  if (name.empty() || name.starts_with("DDP")) {
    strategy.no_effect("how ranks work together is up to section parallel");
  } else {
    strategy.not_honoured("ranks divide samples and models: see section parallel");
  }
}

}  // namespace

void import_training(Translation& t) {
  const Place training = t.root["training"];
  const Section train = t.section("train");
  import_length(t, train);
  import_precision(t, training["precision"], train);
  import_rollout(t, train);
  import_validation(t, train);
  import_ranks(t);
  import_checkpoints(t);
  import_callbacks(t.root["diagnostics"]["callbacks"]);
  import_start(t);
  import_method(training);
  const Place log = t.root["diagnostics"]["log"]["interval"],
              bar = t.root["diagnostics"]["enable_progress_bar"];
  if (log) t.section("log").set("every_steps", log.integer(), log);
  if (bar) t.section("log").set("progress_bar", bar.boolean(), bar);
}

void pass_over_the_rest(Translation& t) {
  const Place training = t.root["training"];
  training["num_sanity_val_steps"].no_effect("what validation reads is checked at the start");
  training["deterministic"].no_effect("there is no such switch: most sums are in a fixed order");
  training["preferred_blas_backend"].no_effect("products are up to the program");
  training["recompile_limit"].no_effect("nothing is compiled at run time");
  const Place diagnostics = t.root["diagnostics"];
  if (diagnostics.is_object()) {
    for (const auto& [key, member] : diagnostics.members()) {
      if (key == "log") {
        for (const auto& [logger, options] : member.members())
          if (logger != "interval") options.no_effect("logs are text, JSON lines and TensorBoard");
      } else {
        member.leave("plots, logs and profiles are this program's own");
      }
    }
  }
  const Place input = t.root["system"]["input"], old = t.root["hardware"];
  if (input.is_object()) {
    for (const auto& [key, member] : input.members())
      member.leave("paths are where they are used");
  }
  t.root["system"]["output"].no_effect("where a run writes is run.dir");
  old["paths"].leave("paths are where they are used; where a run writes is run.dir");
  for (const char* key : {"truncation", "truncation_inv"})
    old["files"][key].expect(nullptr,
                             "name the matrices in model.residual.truncation_down and _up");
  for (const auto& [key, member] : old["files"].members())
    member.leave("paths are where they are used");
  for (const char* key : {"config_validation", "hydra", "defaults", "datamodule", "training_type"})
    t.root[key].no_effect("is about how Anemoi starts");
}

}  // namespace aifs::anemoi
