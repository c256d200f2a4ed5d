// SPDX-License-Identifier: Apache-2.0
#include "app/run_card.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>

#include "app/device.h"
#include "app/versions.h"
#include "core/time.h"
#include "parallel/runtime.h"

namespace aifs::app {

namespace {

std::string row(const std::string& name, const std::string& value) {
  char label[32];
  std::snprintf(label, sizeof label, "  %-14s ", name.c_str());
  return label + value + "\n";
}

std::string period(const data::DatasetInfo& info) {
  return concat(
      info.num_rows(), " dates, ", format_date(info.dates_s.front()), " to ",
      format_date(info.dates_s.back()), ", every ", format_duration(info.frequency_s),
      info.missing_rows.empty() ? "" : concat(", ", info.missing_rows.size(), " missing"));
}

// What a step takes of a rank, as planned.
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

// How ranks divide the work, and where each of the first ones is.
std::string rank_rows(const Run& run, const std::vector<std::string>& ranks) {
  if (ranks.size() < 2) return "";
  constexpr size_t kShown = 16;
  const parallel::MeshSizes& sizes = run.mesh().sizes();
  std::string product =
      concat(ranks.size(), " = ", sizes.data, " replicas x ", sizes.model, " ranks a sample");
  if (sizes.pipeline > 1) product += concat(" x ", sizes.pipeline, " stages");
  if (sizes.tensor > 1) product += concat(" x ", sizes.tensor, " slices of layers");
  std::string rows = row("ranks", product);
  for (size_t r = 0; r < std::min(kShown, ranks.size()); ++r)
    rows += row("", ranks[r]);
  if (ranks.size() > kShown) rows += row("", concat("and ", ranks.size() - kShown, " more"));
  return rows;
}

}  // namespace

std::string run_card(const Run& run, const std::vector<std::string>& ranks) {
  const RunConfig& c = run.config();
  const data::DatasetInfo& training = run.data().training->info();
  const data::DatasetInfo& validation = run.data().validation->info();
  const data::VariableTable& variables = run.data().variables;
  std::string graph_line;
  for (const auto& [name, count] : run.graph().report.node_counts) {
    graph_line += concat(graph_line.empty() ? "" : ", ", count, " ", name, " nodes");
  }
  for (const auto& edges : run.graph().report.edge_sets) {
    graph_line += concat(", ", edges.num_edges, " ", edges.source, "->", edges.target);
  }
  return concat(
      "aifs-train ", program_version(), "\n", row("run", concat(c.run.dir, ", seed ", c.run.seed)),
      row("host", concat(parallel::host_name(), ", ", at::get_num_threads(), " threads, ",
                         device_name(run.device()), ", ", enum_name(c.train.precision))),
      rank_rows(run, ranks), row("training", concat(training.name, ": ", period(training))),
      row("validation", period(validation)),
      row("variables",
          concat(variables.num_inputs(), " in, ", variables.num_outputs(), " out, ",
                 variables.num_prognostic(), " of them prognostic; ", c.data.multistep_input,
                 " times in, ", c.data.multistep_output, " out, step ", c.data.timestep)),
      row("graph", concat(graph_line, "; ", run.graph().report.parts.empty() ? "loaded" : "built",
                          " in ", format_elapsed(run.graph().seconds))),
      row("model",
          concat(enum_name(c.model.processor.kind), ", ", c.model.channels, " channels, ",
                 c.model.layers, " layers, ", run.parameters().num_trainable(), " parameters")),
      row("loss", concat(enum_name(c.loss.kind), ", ", c.loss.scalers.size(), " scalers")),
      row("optimizer",
          concat("AdamW, lr ", c.optimizer.schedule.lr, " ", enum_name(c.optimizer.schedule.kind),
                 ", warm-up ", c.optimizer.schedule.warmup_steps, ", batch ", c.data.batch_size,
                 " x ", c.train.accumulate_batches)),
      row("length",
          concat(c.train.max_steps, " steps, ", c.train.max_epochs, " epochs (0: no limit)")),
      memory_row(run), row("start", run.phases().text()));
}

}  // namespace aifs::app
