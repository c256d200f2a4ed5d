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

std::string mebibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", bytes / (1 << 20));
  return text;
}

std::string period(const data::DatasetInfo& info) {
  return concat(
      info.num_rows(), " dates, ", format_date(info.dates_s.front()), " to ",
      format_date(info.dates_s.back()), ", every ", format_duration(info.frequency_s),
      info.missing_rows.empty() ? "" : concat(", ", info.missing_rows.size(), " missing"));
}

// What training keeps in memory at once, to first order: parameters with gradient and two moments,
// and the tensors that backward needs. A GNN layer keeps about seven rows per edge and node.
double activation_bytes(const Run& run) {
  const auto& graph = run.graph().graph;
  const RunConfig& c = run.config();
  const auto channels = static_cast<double>(c.model.channels);
  const double of_layers = 7.0 * static_cast<double>(c.model.layers);
  double rows = 0.0;
  for (const graph::EdgeSet& edges : graph.edge_sets) {
    rows += (edges.source == edges.target ? 5.0 + of_layers : 12.0) *
            static_cast<double>(edges.num_edges());
  }
  for (const graph::NodeSet& nodes : graph.node_sets) {
    rows +=
        (nodes.name == "data" ? 21.0 : 12.0 + of_layers) * static_cast<double>(nodes.num_nodes());
  }
  const double element = c.train.precision == train::Precision::kFp64 ? 8.0 : 4.0;
  return element * channels * rows * static_cast<double>(c.data.batch_size) *
         static_cast<double>(c.train.rollout.maximum);
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
  const auto parameters = static_cast<double>(run.parameters().flat_values().numel());
  const double element = c.train.precision == train::Precision::kFp64 ? 8.0 : 4.0;
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
      row("memory",
          concat("about ", mebibytes(4.0 * element * parameters), " weights and optimiser, ",
                 mebibytes(activation_bytes(run)), " activations")),
      row("start", run.phases().text()));
}

}  // namespace aifs::app
