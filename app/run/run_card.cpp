// SPDX-License-Identifier: Apache-2.0
#include "app/run/run_card.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstdio>

#include "app/run/device.h"
#include "app/run/versions.h"
#include "core/host.h"
#include "core/join.h"
#include "core/time.h"
#include "parallel/launch/runtime.h"
#include "train/optim/parameter_groups.h"
#include "train/training_step.h"

namespace aifs::app {

namespace {

std::string row(const std::string& name, const std::string& value) {
  char label[32];
  std::snprintf(label, sizeof label, "  %-14s ", name.c_str());
  return label + value + "\n";
}

// "3 layers", "1 layer".
std::string counted(int64_t count, const std::string& what) {
  return concat(count, " ", what, count == 1 ? "" : "s");
}

std::string period(const data::DatasetInfo& info) {
  return concat(
      info.num_rows(), " dates, ", format_date(info.dates_s.front()), " to ",
      format_date(info.dates_s.back()), ", every ", format_duration(info.frequency_s),
      info.missing_rows.empty() ? "" : concat(", ", info.missing_rows.size(), " missing"));
}

// Returns what a step takes of a rank, as planned.
std::string memory_row(const Run& run) {
  const std::optional<plan::MemoryPlan> memory = run.planned_memory();
  if (!memory) return "";
  const auto amount = [](double bytes) {
    const double mib = bytes / (1 << 20);
    char text[32];
    std::snprintf(text, sizeof text, mib < 1024 ? "%.1f MiB" : "%.1f GiB",
                  mib < 1024 ? mib : mib / 1024);
    return std::string(text);
  };
  const double states =
      memory->parameters + memory->gradients + memory->optimizer + memory->average;
  return row("memory",
             concat("about ", amount(memory->device()), " a rank: ", amount(states),
                    " weights and optimiser, ", amount(memory->activations()), " activations"));
}

// How ranks divide the work, and which hosts and devices they are on.
std::string rank_rows(const Run& run, const std::vector<std::string>& places) {
  if (places.size() < 2) return "";
  const parallel::MeshSizes& sizes = run.mesh().sizes();
  std::string product =
      concat(places.size(), " = ", sizes.data, " replicas x ", sizes.model, " ranks a sample");
  if (sizes.pipeline > 1) product += concat(" x ", sizes.pipeline, " stages");
  if (sizes.tensor > 1) product += concat(" x ", sizes.tensor, " slices of layers");
  if (run.config().parallel.reproducible) product += ", each a thread of a process";
  std::string rows = row("ranks", product);
  for (const std::string& line : host_lines(places))
    rows += row("", line);
  return rows;
}

int64_t num_frozen(const model::ParameterSet& parameters, const train::OptimizerOptions& o) {
  std::vector<std::string> names = train::untrained(parameters, o);
  int64_t count = 0;
  for (const model::Parameter& parameter : parameters.entries()) {
    const bool frozen = std::any_of(names.begin(), names.end(), [&](const std::string& p) {
      return train::matches_pattern(parameter.name, p);
    });
    if (frozen && parameter.is_optimised()) count += c10::multiply_integers(whole_sizes(parameter));
  }
  return count;
}

std::string graph_text(const GraphParts& graph) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : graph.report.node_counts)
    parts.push_back(concat(count, " ", name, " nodes"));
  for (const auto& edges : graph.report.edge_sets)
    parts.push_back(concat(edges.num_edges, " ", edges.source, "->", edges.target));
  for (const std::string& note : graph.report.notes)
    parts.push_back(note);
  return concat(join(parts), "; ", graph.report.parts.empty() ? "loaded" : "built", " in ",
                format_elapsed(graph.seconds));
}

}  // namespace

std::vector<std::string> host_lines(const std::vector<std::string>& places) {
  // Hosts in order of their first rank, with the devices of their ranks.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, int64_t>>>> hosts;
  const auto entry = [](auto& list, const std::string& key) -> auto& {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.first == key; });
    if (found != list.end()) return found->second;
    list.emplace_back();
    list.back().first = key;
    return list.back().second;
  };
  for (const std::string& place : places) {
    const size_t colon = place.find(": ");
    ++entry(entry(hosts, place.substr(0, colon)), place.substr(colon + 2));
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;
  for (const auto& [host, devices] : hosts) {
    std::vector<std::string> texts;
    for (const auto& [device, count] : devices)
      texts.push_back(concat(counted(count, "rank"), " on ", device));
    entry(alike, join(texts)).push_back(host);
  }
  constexpr size_t kNamed = 4;
  std::vector<std::string> lines;
  for (const auto& [text, names] : alike) {
    std::vector<std::string> shown(names.begin(), names.begin() + std::min(kNamed, names.size()));
    if (names.size() > kNamed) shown.back() = concat("... ", names.back());
    lines.push_back(names.size() == 1
                        ? concat(names.front(), ": ", text)
                        : concat(names.size(), " hosts, each ", text, ": ", join(shown)));
  }
  return lines;
}

std::string model_text(const model::ModelOptions& model, int64_t parameters, int64_t frozen) {
  const model::BlockOptions& processor = model.processor;
  const bool hierarchy = !model.hierarchy.meshes.empty();
  std::vector<std::pair<const model::BlockOptions*, const char*>> blocks{
      {&model.encoder, "encoder"}, {&processor, "processor"}, {&model.decoder, "decoder"}};
  if (hierarchy) {
    blocks.insert(blocks.begin() + 1, {&model.hierarchy.upscale, "upscale"});
    blocks.insert(blocks.end() - 1, {&model.hierarchy.downscale, "downscale"});
  }
  const bool alike = std::all_of(blocks.begin(), blocks.end(),
                                 [&](const auto& b) { return b.first->kind == processor.kind; });
  std::vector<std::string> parts;
  if (alike) parts.emplace_back(enum_name(processor.kind));
  for (const auto& [block, name] : blocks) {
    if (!alike) parts.push_back(concat(enum_name(block->kind), " ", name));
  }
  if (hierarchy) {
    parts.push_back(concat(join(model.hierarchy.meshes, " > "), " with ", model.channels,
                           " channels on the first and twice as many on each coarser mesh"));
  } else {
    parts.push_back(counted(model.width(processor), "channel"));
    if (model.width(model.decoder) != model.width(processor))
      parts.back() += concat(" (decoder ", model.width(model.decoder), ")");
  }
  if (processor.kind != model::BlockKind::kNone) {
    parts.push_back(counted(model.num_layers(), "layer"));
    if (model.num_layers() != model.layers) {
      parts.back() += concat(" (", model.layers, " on the coarsest mesh, ",
                             2 * model.hierarchy.layers(), " on each finer one)");
    }
  }
  if (model.ensemble.noise != model::NoiseKind::kNone)
    parts.push_back(concat(counted(model.ensemble.members, "member"), " with noise"));
  parts.push_back(counted(parameters, "parameter"));
  if (frozen > 0) parts.back() += concat(", ", frozen, " of them frozen");
  return join(parts);
}

std::string loss_text(const train::LossOptions& loss) {
  std::vector<std::string> parts;
  for (const auto& [path, term] : loss.effective_terms()) {
    std::string text =
        term.weight == 1.0 ? term.kind.name() : concat(term.weight, " ", term.kind.name());
    if (!term.variables.empty()) text += concat(" of ", counted(term.variables.size(), "variable"));
    if (!term.scales.weights.empty())
      text += concat(" on ", counted(term.scales.weights.size(), "scale"));
    if (!term.time_aggregation.empty())
      text += concat(" of the ", join(term.time_aggregation, " and "), " over time");
    parts.push_back(concat(text, " (", term.scalers.empty() ? "no scalers" : "scalers ",
                           join(term.scalers), ")"));
  }
  return join(parts, " + ");
}

std::string optimizer_text(const train::OptimizerOptions& o, int64_t samples_per_step) {
  const train::ScheduleOptions& schedule = o.schedule;
  std::string text =
      concat(enum_name(o.adamw.kind), ", lr ",
             train::scaled_lr(schedule.lr, o.lr_scaling, samples_per_step, o.reference_samples));
  if (o.lr_scaling != train::LrScaling::kNone)
    text += concat(" (", schedule.lr, " for ", counted(o.reference_samples, "sample"), ", ",
                   enum_name(o.lr_scaling), ")");
  text += concat(" ", enum_name(schedule.kind));
  if (schedule.kind == train::ScheduleKind::kCosine) text += concat(" to ", schedule.lr_min);
  text += concat(", warm-up ", counted(schedule.warmup_steps, "step"));
  if (schedule.cooldown_steps > 0)
    text += concat(", to ", schedule.lr_min, " over the last ",
                   counted(schedule.cooldown_steps, "step"));
  if (o.lora.is_on()) text += concat(", adapters of rank ", o.lora.rank, ", alpha ", o.lora.alpha);
  text += o.clip == train::ClipKind::kNone
              ? ", gradients not clipped"
              : concat(", gradients clipped by ", enum_name(o.clip), " at ", o.clip_limit);
  if (!o.groups.empty()) text += concat(", ", counted(o.groups.size(), "group"));
  if (o.average.kind != train::AverageKind::kNone)
    text += concat(", average ", enum_name(o.average.kind), " of the weights");
  return text;
}

std::string length_text(const train::TrainOptions& train) {
  std::vector<std::string> limits;
  if (train.max_steps > 0) limits.push_back(counted(train.max_steps, "step"));
  if (train.max_epochs > 0) limits.push_back(counted(train.max_epochs, "epoch"));
  if (train.max_minutes > 0) limits.push_back(concat(train.max_minutes, " min"));
  const train::RolloutOptions& r = train.rollout;
  std::string text = concat(join(limits, " or "), ", forecasts of ", counted(r.start, "step"));
  if (!r.grows()) return text;
  const bool by_epoch = r.epoch_increment > 0;
  const int64_t every = by_epoch ? r.epoch_increment : r.step_increment;
  const std::string unit = by_epoch ? "epoch" : "optimiser step";
  return concat(text, ", one more every ", every == 1 ? unit : counted(every, unit), " up to ",
                r.maximum);
}

std::string variables_text(const DataParts& data) {
  const data::VariableTable& variables = data.variables;
  return concat(variables.num_inputs(), " in, ", variables.num_outputs(), " out, ",
                variables.num_prognostic(), " of them prognostic");
}

// Datasets, dates and variables.
std::string data_rows(const Run& run) {
  const RunConfig& c = run.config();
  const std::string times = concat("; ", counted(c.data.multistep_input, "time"), " in, ",
                                   c.data.multistep_output, " out, step ", c.data.timestep);
  const data::DatasetInfo& training = run.data().training->info();
  const bool validates = c.train.validation.is_on();
  const std::string validation =
      row("validation", validates ? period(run.data().validation->info()) : std::string("none"));
  if (run.datasets().size() == 1) {
    return row("training", concat(training.name, ": ", period(training))) + validation +
           row("variables", variables_text(run.data()) + times);
  }
  std::string rows = row("training", period(training)) + validation;
  for (const DataParts& data : run.datasets()) {
    const data::DatasetInfo& info = data.training->info();
    rows += row("dataset", concat(data.name, ": ", info.name, ", ", info.num_nodes(), " cells, ",
                                  variables_text(data)));
  }
  return rows + row("times", times.substr(2));
}

// How many cells are predicted where a mask leaves some out.
std::string mask_rows(const Run& run) {
  std::string rows;
  for (size_t d = 0; d < run.datasets().size(); ++d) {
    const at::Tensor& mask = run.output_mask(d);
    if (!mask.defined()) continue;
    const std::string name =
        run.datasets().size() > 1 ? concat(run.datasets()[d].name, ": ") : std::string();
    rows += row("predicted", concat(name, mask.sum().item<int64_t>(), " of ", mask.numel(),
                                    " cells; the others are given"));
  }
  return rows;
}

std::string run_card(const Run& run, const std::vector<std::string>& places) {
  const RunConfig& c = run.config();
  const int64_t replicas = run.mesh().sizes().data;
  const int64_t samples = c.data.batch_size * c.train.accumulate_batches * replicas;
  return concat(
      "aifs-train ", program_version(), "\n", row("run", concat(c.run.dir, ", seed ", c.run.seed)),
      row("host", concat(host_name(), ", ", counted(at::get_num_threads(), "thread"),
                         places.size() > 1 ? " a rank, " : ", ", device_name(run.device()), ", ",
                         enum_name(c.train.precision))),
      rank_rows(run, places), data_rows(run), row("graph", graph_text(run.graph())),
      row("edges", run.graph().report.edges_text()), mask_rows(run),
      row("model", model_text(c.model, run.parameters().num_trainable(),
                              num_frozen(run.parameters(), c.optimizer))),
      row("loss", loss_text(c.loss)), row("optimizer", optimizer_text(c.optimizer, samples)),
      row("batch",
          concat(c.data.batch_size, " x ", c.train.accumulate_batches, " accumulated x ",
                 counted(replicas, "replica"), " = ", counted(samples, "sample"), " a step")),
      row("length", length_text(c.train)), memory_row(run), row("start", run.phases().text()));
}

}  // namespace aifs::app
