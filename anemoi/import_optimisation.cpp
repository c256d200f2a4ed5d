// SPDX-License-Identifier: Apache-2.0
// What "training" says of the optimiser, learning rate, clipping and averages of weights: in
// "optimization" since the middle of 2026, before in "optimizer" and "lr".
#include <map>

#include "anemoi/sections.h"
#include "core/check.h"

namespace aifs::anemoi {

namespace {

constexpr double kLr = 0.625e-4, kLrMin = 3e-7;

void import_betas(const Place& betas, const std::vector<double>& usual, const Section& out) {
  const std::vector<double> values = betas ? betas.numbers() : usual;
  const char* keys[] = {"beta1", "beta2", "beta3"};
  for (size_t i = 0; i < values.size() && i < 3; ++i)
    out.set(keys[i], values[i], betas);
}

// Options that only say how a step is computed, not what it does.
void pass_over_forms(const Place& optimizer) {
  for (const char* key : {"fused", "foreach", "capturable", "differentiable"})
    optimizer[key].no_effect("how a step is computed is up to the program");
  optimizer["amsgrad"].expect(false, "there is no maximum of past squares");
  optimizer["maximize"].expect(false, "the loss is minimised");
}

void import_adam(const Place& optimizer, const std::string& name, const Section& out) {
  // Without a section of its own the optimiser is that of Anemoi, else the class has the defaults.
  import_betas(optimizer["betas"], {0.9, optimizer ? 0.999 : 0.95}, out);
  const Place decay = optimizer["weight_decay"], eps = optimizer["eps"];
  // Adam without decay is AdamW without it.
  out.set("weight_decay", decay.number(name == "Adam" ? 0.0 : 0.01), decay);
  if (name == "Adam" && decay.number(0.0) > 0.0)
    decay.not_honoured("decay is decoupled from the gradient, as in AdamW");
  if (eps) out.set("eps", eps.number(), eps);
  pass_over_forms(optimizer);
}

void import_ademamix(const Place& optimizer, const Section& out) {
  const Place decay = optimizer["weight_decay"], eps = optimizer["eps"], alpha = optimizer["alpha"];
  out.set("kind", "ademamix", optimizer["_target_"]);
  import_betas(optimizer["betas"], {0.9, 0.999, 0.9999}, out);
  out.set("weight_decay", decay.number(0.0), decay);
  if (eps) out.set("eps", eps.number(), eps);
  pass_over_forms(optimizer);
  out.set("alpha", alpha.number(2.0), alpha);
  for (const char* key : {"alpha_warmup", "beta3_warmup"})
    if (optimizer[key]) out.set(key, optimizer[key].whole(), optimizer[key]);
}

void import_optimizer(const Translation& t, const Place& optimizer, const Section& out) {
  std::string name = optimizer.class_name();
  out.set("kind", "adamw", optimizer["_target_"]);
  bool sharded = optimizer["zero"].boolean(false);
  if (name == "ZeroRedundancyOptimizer") {
    sharded = true;
    name = optimizer["optimizer_class"].class_name();
    optimizer["optimizer_class"]["_partial_"].mark();
  }
  if (sharded) t.section("parallel")["sharding"].set("states", "optimizer", optimizer);
  const Place options = optimizer["kwargs"] ? optimizer["kwargs"] : optimizer;
  optimizer["_partial_"].mark();
  if (name == "AdEMAMix") {
    import_ademamix(options, out);
  } else if (name.empty() || name == "AdamW" || name == "Adam") {
    import_adam(options, name, out);
  } else {
    optimizer["_target_"].not_honoured("there are AdamW and AdEMAMix; this is trained by AdamW");
  }
}

// The rate is meant for one instance of the model and grows with their number, as in Anemoi, where
// the size of batches does not count.
void scale_rate(const Translation& t, const Section& out) {
  const Json* batch = t.section("data").find("batch_size");
  const int64_t samples = batch ? batch->get<int64_t>() : 1;
  out.set("lr_scaling", "linear", t.hardware());
  out.set(
      "reference_samples",
      checked_product(samples, t.accumulated_batches(), t.root["training"]["accum_grad_batches"]),
      t.hardware());
}

void import_schedule(const Place& scheduler, const Section& schedule) {
  const std::string name = scheduler.class_name();
  if (!scheduler) {
    schedule.set("kind", "constant", scheduler);
    schedule.set("warmup_steps", 0, scheduler);
    return;
  }
  if (name != "CosineLRScheduler") {
    scheduler.not_honoured("the rate follows timm's CosineLRScheduler, or is constant");
    return;
  }
  const Place end = scheduler["t_initial"], warmup = scheduler["warmup_t"],
              least = scheduler["lr_min"];
  schedule.set("kind", "cosine", scheduler["_target_"]);
  if (end) schedule.set("total_steps", end.integer(), end);
  schedule.set("warmup_steps", warmup.integer(0), warmup);
  schedule.set("lr_min", least.number(0.0), least);
  scheduler["t_in_epochs"].expect(false, "steps are counted");
  scheduler["warmup_lr_init"].expect(0.0, "the warm-up begins at 0");
  scheduler["warmup_prefix"].expect(false, "the cosine begins with the warm-up");
  scheduler["cycle_limit"].expect(1, "there is one cycle");
  scheduler["cycle_mul"].no_effect("there is one cycle");
  scheduler["cycle_decay"].no_effect("there is one cycle");
  scheduler["_partial_"].mark();
}

// Releases of 2025: rate, iterations, min, warmup.
void import_old_schedule(const Place& lr, const Section& schedule) {
  const Place end = lr["iterations"], warmup = lr.any_of({"warmup", "warmup_t"});
  schedule.set("kind", "cosine", lr);
  schedule.set("lr", lr["rate"].number(kLr), lr["rate"]);
  if (end) schedule.set("total_steps", end.integer(), end);
  schedule.set("lr_min", lr["min"].number(kLrMin), lr["min"]);
  schedule.set("warmup_steps", warmup.integer(1000), warmup);
}

void import_average(const Place& averaging, const Section& out) {
  const Section average = out["average"];
  const std::string name = averaging.class_name();
  if (!averaging) return;
  if (name == "EMAWeightAveraging") {
    const Place decay = averaging["decay"];
    average.set("kind", "ema", averaging["_target_"]);
    average.set("decay", decay.number(0.999), decay);
  } else if (name == "SWAWeightAveraging") {
    average.set("kind", "mean", averaging["_target_"]);
  } else {
    averaging.not_honoured(
        "weights are averaged from the first step on, exponentially or plainly, while the rate "
        "goes on as it would");
    return;
  }
  averaging["use_buffers"].no_effect("only weights are averaged");
  averaging["device"].no_effect("averages are where the weights are");
  const bool anemoi = averaging["_target_"].text().starts_with("anemoi");
  for (const char* key :
       {"update_every_n_steps", "update_starting_at_step", "update_starting_at_epoch"}) {
    if (anemoi) {
      averaging[key].no_effect("Anemoi passes over it, too");
    } else {
      averaging[key].expect(key == std::string("update_every_n_steps") ? Json(1) : Json(0),
                            "weights are averaged at every step from the first on");
    }
  }
}

void import_clipping(const Place& clip, const Section& out) {
  const Place limit = clip["val"], algorithm = clip["algorithm"];
  const double value = limit.number(32.0);
  const std::string name = algorithm.text("value");
  if (value > 0.0) {
    out.set("clip", name, algorithm);
    out.set("clip_limit", value, limit);
  } else {
    out.set("clip", "none", limit);
  }
}

}  // namespace

void import_optimisation(Translation& t) {
  const Place training = t.root["training"], optimization = training["optimization"];
  const Section out = t.section("optimizer"), schedule = out["schedule"];
  if (optimization) {
    import_optimizer(t, optimization["optimizer"], out);
    schedule.set("lr", optimization["lr"].number(kLr), optimization["lr"]);
    import_schedule(optimization["lr_scheduler"], schedule);
    optimization["pl_lr_scheduler"]["interval"].expect("step", "the rate changes at every step");
    optimization["pl_lr_scheduler"]["frequency"].expect(1, "the rate changes at every step");
  } else {
    import_optimizer(t, training["optimizer"], out);
    import_old_schedule(training["lr"], schedule);
    const Place zero = training["zero_optimizer"];
    if (zero.boolean(false)) t.section("parallel")["sharding"].set("states", "optimizer", zero);
  }
  scale_rate(t, out);
  import_clipping(training["gradient_clip"], out);
  import_average(training["weight_averaging"], out);
  const Place swa = training["swa"];
  if (swa && swa["enabled"].boolean(false)) {
    swa["enabled"].not_honoured("Lightning's average of weights lowers the rate near the end");
  }
  swa["lr"].no_effect("is for an average that is not made");
  const Place freeze = training["submodules_to_freeze"];
  if (freeze && !freeze.texts().empty()) out.set("freeze", freeze.texts(), freeze);
}

}  // namespace aifs::anemoi
