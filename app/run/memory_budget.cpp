// SPDX-License-Identifier: Apache-2.0
#include "app/run/memory_budget.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/check.h"

namespace aifs::app {

namespace {

using model::RecomputePolicy;

struct Rung {
  RecomputePolicy mappers, processor;
  int64_t mapper_chunks;
  int64_t edge_ranges = 1;
  double offload = 0.0;  // share of the processor's pairs of layers
};

// From fast to small.
std::vector<Rung> ladder() {
  using P = RecomputePolicy;
  std::vector<Rung> rungs{{P::kNone, P::kNone, 1},
                          {P::kEmbedding, P::kNone, 1},
                          {P::kEmbedding, P::kMlp, 1},
                          {P::kNone, P::kBlock, 1},
                          {P::kBlock, P::kMlp, 4}};
  for (const int64_t chunks : {4, 8, 16, 32, 64, 128})
    rungs.push_back({P::kBlock, P::kBlock, chunks});
  for (const int64_t chunks : {16, 32, 128}) {
    for (const double offload : {0.5, 0.75, 1.0})
      rungs.push_back({P::kBlock, P::kFull, chunks, chunks / 4, offload});
  }
  return rungs;
}

// The options on this rung, or none if the kinds of its parts know no such thing.
std::optional<model::ModelOptions> on_rung(model::ModelOptions options, const Rung& rung) {
  for (model::BlockOptions* mapper :
       {&options.encoder, static_cast<model::BlockOptions*>(&options.decoder)}) {
    mapper->recompute = std::max(mapper->recompute, rung.mappers);
    mapper->chunks = std::max(mapper->chunks, rung.mapper_chunks);
  }
  model::BlockOptions& processor = options.processor;
  if (rung.offload > 0.0 &&
      (processor.recompute != RecomputePolicy::kFull || processor.chunks == 1))
    processor.chunks = std::max<int64_t>(1, options.layers / 2);
  processor.recompute = std::max(processor.recompute, rung.processor);
  const int64_t groups =
      model::step_groups(options.layers, {processor.recompute, processor.chunks, 0}).count;
  const double share = rung.offload * static_cast<double>(groups - 1);
  processor.offload = std::max(processor.offload, static_cast<int64_t>(share));
  if (processor.kind == model::BlockKind::kGnn)
    processor.edge_ranges = std::max(processor.edge_ranges, rung.edge_ranges);
  try {
    options.validate("model");
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  return options;
}

constexpr double kGib = 1 << 30;

std::string describe(const model::ModelOptions& options, const plan::MemoryPlan& memory,
                     double budget) {
  char figures[64], host[64];
  std::snprintf(figures, sizeof figures, "%.3g of %.3g GiB", memory.device() / kGib, budget);
  std::snprintf(host, sizeof host, "%.3g GiB", memory.host_inputs / kGib);
  const model::BlockOptions& processor = options.processor;
  return concat(
      "run again in the backward pass: of encoder and decoder ",
      enum_name(options.decoder.recompute), " in ", options.decoder.chunks,
      " chunks, of the processor ", enum_name(processor.recompute),
      processor.edge_ranges > 1 ? concat(" in ", processor.edge_ranges, " ranges of edges") : "",
      processor.offload > 0
          ? concat(", inputs of ", processor.offload, " groups of layers on the host (", host, ")")
          : "",
      ": ", figures);
}

}  // namespace

FittedModel fit_memory(const plan::StepInput& input, const plan::Division& division) {
  const model::ModelOptions& wanted = input.network.model;
  const double budget = wanted.memory_budget;
  if (budget == 0.0) return {wanted, ""};
  double least = 0.0;
  for (const Rung& rung : ladder()) {
    if (rung.offload > 0.0 && !input.network.gpu) continue;
    const auto options = on_rung(wanted, rung);
    if (!options) continue;
    plan::StepInput candidate = input;
    candidate.network.model = *options;
    const plan::MemoryPlan memory = plan::plan_step(candidate, division).memory;
    const double gib = memory.device() / kGib;
    if (gib <= budget) return {*options, describe(*options, memory, budget)};
    least = least == 0.0 ? gib : std::min(least, gib);
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.3g GiB are too few: a rank needs %.3g", budget, least);
  throw ConfigError("model.memory_budget", text,
                    "divide the sample over more ranks (parallel.model), share out states "
                    "(parallel.sharding), or make the model smaller");
}

}  // namespace aifs::app
