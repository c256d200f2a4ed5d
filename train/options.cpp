// SPDX-License-Identifier: Apache-2.0
#include "train/options.h"

#include <algorithm>

#include "core/check.h"
#include "core/time.h"

namespace aifs::train {

void ValidationOptions::bind(config::Binder& b) {
  b.integer("every_steps", every_steps, {.min = 0},
            {"validate after every so many; 0 never", "steps"});
  b.integer("every_epochs", every_epochs, {.min = 0},
            {"validate after every so many; 0 never", "epochs"});
  b.boolean("at_end", at_end, {"validate when training ends"});
  b.text_list("lead_times", lead_times,
              {"lead times at which forecasts are compared with the truth; empty is one timestep"},
              config::TextKind::kDuration);
  b.integer("max_dates", max_dates, {.min = 0},
            {"start forecasts at no more than so many dates, evenly spread; 0 takes all", "dates"});
  b.choice("weights", weights,
           {"weights of the cells in RMSE: area of the graph's cells, cosine of "
            "latitude, or none"});
  b.text("region", region,
         {"attribute of the data nodes that is not 0 in a region, for example cutout_mask: scores "
          "are given of the cells inside and of those outside, too, as *_inside_lam and "
          "*_outside_lam; empty: of the whole only"});
  b.text_list("regions", regions,
              {"regions whose scores are given, too, as rmse_nh and the like: nh, sh (beyond 20 "
               "degrees), tropics, europe, or name=north/west/south/east"});
  b.integer("rollout", rollout, {.min = 0, .max = 1024},
            {"forecast steps that the loss is averaged over; 0: as many as training samples have "
             "at that time",
             "steps"});
  b.choice("on_failure", on_failure,
           {"when data of a validation cannot be read: continue training without its scores, or "
            "stop with an error, after the checkpoint that is due"});
}

void ValidationOptions::validate(const std::string& path) const {
  for (size_t i = 0; i < lead_times.size(); ++i) {
    if (parse_duration(lead_times[i]) <= 0) {
      throw ConfigError(concat(path, ".lead_times.", i), "a lead time must be positive");
    }
  }
}

void TrainOptions::bind(config::Binder& b) {
  b.integer("max_steps", max_steps, {.min = 0}, {"optimiser steps; 0: no limit", "steps"});
  b.integer("max_epochs", max_epochs, {.min = 0}, {"passes over the data; 0: no limit", "epochs"});
  b.number("max_minutes", max_minutes, {.min = 0.0},
           {"stop with a checkpoint after so long, to be resumed; 0: no limit", "min"});
  b.integer("accumulate_batches", accumulate_batches, {.min = 1, .max = 1 << 20},
            {"batches whose gradients are averaged for one optimiser step"});
  b.choice("accumulation", accumulation,
           {"how the last step of an epoch, which may have fewer batches, is averaged: mean, over "
            "the batches there are; anemoi, as if the missing ones had gradients of 0 (divided by "
            "accumulate_batches), so that it moves less"});
  b.choice(
      "precision", precision,
      {"type of weights and arithmetic; tf32: fp32 with products on the tensor cores of a GPU; "
       "mixed: fp32 weights, activations and products in bfloat16 or in fp16 with a loss scale"});
  b.choice(
      "on_nonfinite", on_nonfinite,
      {"NaN or infinity in loss or gradients: stop with an error, or skip the step. Either way "
       "the batch and where it was found are written to <run.dir>/nonfinite-step-..."});
  b.integer("max_skipped_steps", max_skipped_steps, {.min = 0},
            {"steps skipped in a row before the run stops after all", "steps"});
  b.choice(
      "cuda_graph", cuda_graph,
      {"launch a GPU's work for a batch as one, which saves the host's time for every kernel; "
       "validation needs memory beside it. auto: where at most 40 % of the card is in use. The "
       "log says why not"});
  b.section("rollout", rollout, {"forecast steps per training sample"});
  b.section("validation", validation,
            {"forecasts from validation dates, scored in physical units"});
  b.section("early_stop", early_stop, {"end training when validations gain nothing any more"});
}

void TrainOptions::validate(const std::string& path) const {
  if (max_steps == 0 && max_epochs == 0) {
    throw ConfigError(path + ".max_steps",
                      "max_steps and max_epochs are both 0: training never ends");
  }
}

void AverageOptions::bind(config::Binder& b) {
  b.choice("kind", kind,
           {"none, exponential (ema) or plain mean; validated and saved beside the weights"});
  b.number("decay", decay, {.min = 0.0, .max = 1.0}, {"ema: what stays of the average per step"});
}

void InitOptions::bind(config::Binder& b) {
  b.text("from", from,
         {"run or checkpoint folder whose weights a new run starts from; empty: random"},
         config::TextKind::kPath);
  b.text_list("may_skip", may_skip,
              {"names of tensors, of parts, or with * for any text, that may be missing, "
               "superfluous or of another shape"});
  b.boolean("other_graph", other_graph,
            {"the weights may have been trained on another graph: another grid, mesh or edges, for "
             "which learnt features of nodes and edges were not made"});
  b.boolean("variables_by_name", variables_by_name,
            {"the weights may have been trained on other variables, or in another order: columns "
             "of the embeddings of cells and rows of the output are taken by name; new inputs "
             "weigh 0 at first, new outputs start as drawn"});
}

void OptimizerOptions::bind(config::Binder& b) {
  b.choice("kind", adamw.kind, {"AdamW, or AdEMAMix with a second, slow mean of gradients"});
  b.number("beta1", adamw.beta1, {.min = 0.0, .max = 1.0 - 1e-9}, {"decay of the mean gradient"});
  b.number("beta2", adamw.beta2, {.min = 0.0, .max = 1.0 - 1e-9},
           {"decay of the mean squared gradient"});
  b.number("eps", adamw.eps, {.min = 0.0}, {"added to the root of the mean square"});
  b.number("weight_decay", adamw.weight_decay, {.min = 0.0},
           {"decay of every parameter, decoupled from the gradient"});
  b.number("beta3", adamw.beta3, {.min = 0.0, .max = 1.0 - 1e-9},
           {"AdEMAMix: decay of the slow mean"});
  b.number("alpha", adamw.alpha, {.min = 0.0}, {"AdEMAMix: weight of the slow mean"});
  b.integer("alpha_warmup", adamw.alpha_warmup, {.min = 0},
            {"AdEMAMix: alpha grows from 0 over so many; 0: at once", "steps"});
  b.integer("beta3_warmup", adamw.beta3_warmup, {.min = 0},
            {"AdEMAMix: beta3 grows from beta1 over so many; 0: at once", "steps"});
  b.section("schedule", schedule, {"learning rate"});
  b.choice("lr_scaling", lr_scaling,
           {"how schedule.lr (not lr_min) grows with the samples of a step over all replicas"});
  b.integer("reference_samples", reference_samples, {.min = 1},
            {"samples of a step at which schedule.lr is meant, for lr_scaling"});
  b.list("groups", groups, {"parameters with a learning rate or a decay of their own"});
  b.text_list("freeze", freeze,
              {"parameters that are not trained: names, parts, or with * for any text"});
  b.section("lora", lora, {"low-rank adapters of chosen weights, which alone are trained"});
  b.section("average", average, {"average of the weights over steps"});
  b.choice("clip", clip, {"clip gradients by element, by global norm, or not"});
  b.number("clip_limit", clip_limit, {.min = 1e-12}, {"largest absolute element, or largest norm"});
}

void CheckpointOptions::bind(config::Binder& b) {
  b.integer("every_steps", every_steps, {.min = 0},
            {"write after every so many; 0 never", "steps"});
  b.integer("every_epochs", every_epochs, {.min = 0},
            {"write after every so many; 0 never", "epochs"});
  b.number(
      "every_minutes", every_minutes, {.min = 0.0},
      {"write after a step when the last one is older, by the main rank's clock; 0: never", "min"});
  b.boolean("at_end", at_end, {"write when training ends"});
  b.integer("keep", keep, {.min = 0}, {"newest checkpoints to keep; 0 keeps all"});
  b.integer("keep_every_steps", keep_every_steps, {.min = 0},
            {"keep for good, besides, those of steps that it divides; 0: none", "steps"});
  b.number("keep_every_hours", keep_every_hours, {.min = 0.0},
           {"keep for good, besides, the first one and every one that is so much younger than the "
            "last that was kept so; 0: none",
            "h"});
  b.section("keep_best", keep_best, {"checkpoints with the best scores, kept besides"});
  b.boolean("background", background,
            {"training goes on while the files of a checkpoint are written, from a copy in the "
             "memory of the main rank's host (page-locked for a GPU); false: it waits for them"});
}

void MlflowOptions::bind(config::Binder& b) {
  b.text("dir", dir,
         {"folder of the store, created if needed: mlflow ui --backend-store-uri DIR shows it; "
          "empty: none"},
         config::TextKind::kPath);
  b.text("experiment", experiment, {"experiment of the store that the run belongs to"});
}

void MlflowOptions::validate(const std::string& path) const {
  if (experiment.empty()) throw ConfigError(path + ".experiment", "is empty");
}

void LogOptions::bind(config::Binder& b) {
  b.integer("every_steps", every_steps, {.min = 1},
            {"a line in the log after every so many", "steps"});
  b.text("machine", machine,
         {"description of the machine, as of configs/machines: metrics.jsonl then says what share "
          "of its cards' arithmetic the products of steps use (mfu); empty: no share"},
         config::TextKind::kPath);
  b.choice("gpus", gpus,
           {"use, memory, power, clocks and faults in metrics.jsonl, by the library of NVIDIA's "
            "driver where there is one: of the run's GPUs on the main rank's host, of all of that "
            "host, or none"});
  b.boolean("tensorboard", tensorboard, {"write TensorBoard event files to <run.dir>/tensorboard"});
  b.boolean("csv", csv,
            {"write metrics.csv and validation.csv to <run.dir>, besides metrics.jsonl and "
             "validation.jsonl"});
  b.section("mlflow", mlflow, {"the curves in a store of MLflow, which runs share"});
  b.boolean("progress_bar", progress_bar, {"show a progress bar on a terminal"});
}

void ProfileOptions::bind(config::Binder& b) {
  b.boolean("parts", parts, {"print a table of the time spent per part of a step at the end"});
  b.integer("steps", steps, {.min = 0, .max = 1000},
            {"write a timeline of so many, for chrome://tracing or Perfetto, to "
             "<run.dir>/trace-rank-<n>.json",
             "steps"});
  b.integer("first_step", first_step, {.min = 1}, {"the first of them"});
  b.boolean("nvtx", nvtx, {"mark parts and operations as NVTX ranges for Nsight Systems"});
}

}  // namespace aifs::train
