// SPDX-License-Identifier: Apache-2.0
#include "app/run/plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/run/analytic_cells.h"
#include "app/run/data_parts.h"
#include "app/run/make_data.h"
#include "app/run/memory_budget.h"
#include "app/run/model_graph.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/log.h"
#include "data/combine/open_dataset.h"
#include "data/sources/analytic_dataset.h"
#include "data/sources/anemoi_dataset.h"
#include "graph/stored_graph.h"
#include "plan/report.h"

namespace aifs::app {

namespace {

data::DatasetInfo dataset_info(const RunConfig& config) {
  if (config.data.kind == data::SourceKind::kAnalytic) {
    // Variables do not depend on the grid, of which there may be many cells.
    data::DatasetInfo info = data::AnalyticDataset(config.data.analytic, {0.0}, {0.0}).info();
    if (config.data.analytic.grid.empty()) return info;
    const AnalyticCells cells = analytic_cells(config);
    info.latitudes_deg = cells.places.lat_deg;
    info.longitudes_deg = cells.places.lon_deg;
    info.grids = cells.grids;
    return info;
  }
  try {
    return data::open_dataset(config.data.dataset, data::open_store)->info();
  } catch (const DataError& error) {
    throw DataError(error.what(),
                    "plan without the dataset: --variables PROGNOSTIC,FORCING,DIAGNOSTIC (or "
                    "data.dataset.select, which names them all), and a named grid: --set "
                    "graph.grid=n320");
  }
}

// Returns the names of the dataset's variables; without it those that data.dataset.select names,
// less those of data.dataset.drop.
std::vector<std::string> variable_names(const RunConfig& config) {
  const data::DatasetTree& dataset = config.data.dataset;
  try {
    return dataset_info(config).variables;
  } catch (const DataError& error) {
    if (dataset.select.empty() || !dataset.is_plain()) throw;
    log::info("the variables are those of data.dataset.select: ", error.what());
  }
  std::vector<std::string> names = dataset.select;
  std::erase_if(names, [&](const std::string& name) {
    return std::count(dataset.drop.begin(), dataset.drop.end(), name) > 0;
  });
  return names;
}

void set_variables(plan::StepInput& input, const RunConfig& config, const PlanRequest& request) {
  plan::NetworkInput& network = input.network;
  if (!request.variables.empty()) {
    if (request.variables.size() != 3) {
      throw ConfigError("--variables", concat("has ", request.variables.size(), " numbers"),
                        "give three: prognostic, forcing and diagnostic variables");
    }
    network.prognostic = request.variables[0];
    network.forcing = request.variables[1];
    network.diagnostic = request.variables[2];
  } else {
    const data::VariableTable table(variable_names(config), config.data.roles);
    network.prognostic = table.num_prognostic();
    network.forcing = table.num_inputs() - network.prognostic;
    network.diagnostic = table.num_outputs() - network.prognostic;
  }
  input.dataset_variables = network.prognostic + network.forcing + network.diagnostic;
}

// The value that is called the same in another enumeration, which has all names of this one.
template <class To, class From>
To same_name(From value) {
  for (const auto& [candidate, name] : EnumNames<To>::table) {
    if (enum_name(value) == std::string_view(name)) return candidate;
  }
  throw Error(concat("a plan knows no \"", enum_name(value), "\""));
}

plan::Layout configured_layout(const ParallelOptions& parallel) {
  const bool hybrid =
      parallel.sharding.states == train::Sharding::kParameters && parallel.sharding.ranks > 0;
  const train::ReductionOptions& gradients = parallel.gradients;
  const bool given = gradients.bucket_mb > 0.0;
  const bool in_pieces =
      gradients.overlap || parallel.sharding.states > train::Sharding::kOptimizer;
  const bool two_pieces = in_pieces && !given && !parallel.reproducible;
  return {.model = parallel.sizes.model,
          .tensor = parallel.sizes.tensor,
          .pipeline = parallel.sizes.pipeline,
          .sharding = hybrid ? plan::Sharding::kHybrid
                             : same_name<plan::Sharding>(parallel.sharding.states),
          .bucket_mb = !in_pieces ? 0.0
                       : given    ? gradients.bucket_mb
                                  : train::kBucket_mb,
          .first_piece = two_pieces ? train::kFirstPiece : 0.0,
          .compression = same_name<plan::Compression>(gradients.compression),
          .powersgd_rank = gradients.rank};
}

// Section "parallel" as far as plans know it, then what the command line says.
plan::Layout layout_of(const RunConfig& config, const PlanRequest& request) {
  plan::Layout layout = configured_layout(config.parallel);
  bool data_given = config.parallel.sizes.data > 0;
  if (data_given) layout.data = config.parallel.sizes.data;
  const std::vector<config::Field> fields = config::fields_of(layout);
  config::Json tree = config::write_object(fields);
  config::ReadContext context;
  for (const std::string& assignment : request.layout) {
    if (assignment.starts_with("bucket_mb=")) tree["first_piece"] = 0.0;
    data_given = data_given || assignment.starts_with("data=");
    config::apply_override(tree, assignment, fields, context);
  }
  config::read_object(fields, tree, "layout", context);
  const int64_t replica = layout.model * layout.tensor * layout.pipeline;
  if (request.ranks > 0 && !data_given) layout.data = std::max<int64_t>(1, request.ranks / replica);
  if (request.ranks > 0 && layout.ranks() != request.ranks) {
    throw ConfigError(
        "--ranks",
        concat(request.ranks, " ranks, but model ", layout.model, " x tensor ", layout.tensor,
               " x pipeline ", layout.pipeline, " x data ", layout.data, " = ", layout.ranks()));
  }
  return layout;
}

plan::Arithmetic arithmetic_of(train::Precision precision) {
  switch (precision) {
    case train::Precision::kTf32:
      return plan::Arithmetic::kTf32;
    case train::Precision::kBf16Mixed:
    case train::Precision::kFp16Mixed:
      return plan::Arithmetic::kHalf;
    default:
      return plan::Arithmetic::kFp32;
  }
}

int64_t attribute_width(const graph::Graph& graph, const model::ModelOptions& model) {
  if (graph.edge_sets.empty()) return 0;
  // Edges of the network have the same attributes; a graph may have others, which come first.
  const auto encoder =
      std::find_if(graph.edge_sets.begin(), graph.edge_sets.end(), [&](const auto& edges) {
        return edges.source == "data" && edges.target == model.meshes().front();
      });
  const graph::EdgeSet& edges =
      encoder == graph.edge_sets.end() ? graph.edge_sets.front() : *encoder;
  int64_t width = 0;
  for (const std::string& name : model.edge_attributes) {
    const auto found = edges.attributes.find(name);
    if (found == edges.attributes.end())
      throw ConfigError("model.edge_attributes", concat("the graph has no attribute '", name, "'"));
    width += found->second.width;
  }
  return width;
}

// Without a graph file the graph is built without area weights, which no plan needs; it is not
// saved, for training would take it.
graph::Graph graph_of_plan(const RunConfig& config, const PlanRequest& request) {
  graph::GraphOptions options = config.graph;
  graph::Coordinates cells;
  std::vector<int64_t> grids;
  const bool reads_cells = options.is_long() && request.variables.empty() &&
                           config.data.kind != data::SourceKind::kAnalytic;
  if (options.grid == "dataset" || reads_cells) {
    const data::DatasetInfo info = dataset_info(config);
    cells = {info.latitudes_deg, info.longitudes_deg};
    grids = info.grids;
  }
  const std::vector<graph::NamedCells> datasets{{"data", cells, grids}};
  if (!options.given) {
    options.file = graph::stored_graph(options, datasets);
    options.cache.clear();
  }
  if (options.file.empty()) options.area_weight.kind.choose("uniform");
  return graph::load_or_build_joint_graph(options, datasets);
}

}  // namespace

plan::StepInput step_input(const RunConfig& config, const graph::Graph& graph,
                           const PlanRequest& request) {
  check_graph(config.model, graph);
  const train::Precision precision = config.train.precision;
  plan::StepInput input;
  plan::NetworkInput& network = input.network;
  network.model = config.model;
  network.totals = plan::GraphTotals::of(graph, config.model.meshes());
  network.times_in = config.data.multistep_input;
  network.times_out = config.data.multistep_output;
  network.edge_attributes = attribute_width(graph, config.model);
  network.copies = config.data.batch_size * config.model.ensemble.members;
  network.types = {static_cast<int64_t>(c10::elementSize(train::weight_type(precision))),
                   static_cast<int64_t>(c10::elementSize(train::activation_type(precision)))};
  network.gpu = config.run.device != DeviceChoice::kCpu;
  set_variables(input, config, request);
  network.measure_truncation(graph);

  if (!request.machine.empty()) input.machine = plan::load_machine(request.machine);
  input.layout = layout_of(config, request);
  if (input.layout.pipeline == config.parallel.sizes.pipeline)
    input.stage_layers = layers_of_stages(config);
  input.hidden_order = hidden_order(config);
  input.mapper_sources = config.parallel.mapper_sources;
  input.attention = config.parallel.attention;
  input.arithmetic = arithmetic_of(precision);
  input.rollout = config.train.longest_rollout();
  input.recompute_steps = config.train.rollout.recompute && input.rollout > 1;
  input.accumulate_batches = config.train.accumulate_batches;
  input.batch_size = config.data.batch_size;
  input.batch_times = network.times_in + input.rollout * network.times_out;
  // If nobody says how many, the loader takes room for four; one more is in use.
  constexpr int64_t kAutoBatches = 4;
  input.prefetch_batches =
      1 + (config.data.prefetch_batches > 0 ? config.data.prefetch_batches : kAutoBatches);
  input.optimizer_states = config.optimizer.adamw.kind == train::OptimizerKind::kAdemamix ? 3 : 2;
  input.average = config.optimizer.average.kind != train::AverageKind::kNone;
  input.loss_terms = std::max<int64_t>(1, static_cast<int64_t>(config.loss.terms.size()));
  return input;
}

std::string dry_run(const RunConfig& config, const PlanRequest& request) {
  require_one_dataset(config, "plans are made for a single dataset",
                      "plan with the largest of them in data.dataset");
  const graph::Graph graph = graph_of_plan(config, request);
  plan::StepInput input = step_input(config, graph, request);
  const plan::Division division = plan::divide(input, graph);
  const FittedModel fitted = fit_memory(input, division);
  input.network.model = fitted.options;
  const plan::StepPlan step = plan::plan_step(input, division);
  std::string text =
      concat(fitted.text, fitted.text.empty() ? "" : "\n\n", plan::to_text(step, input.machine));
  nlohmann::ordered_json json = plan::to_json(step);
  std::vector<plan::Scaling> scalings;
  if (request.scaling_ranks > 0) {
    scalings = {plan::strong_scaling(input, graph, request.scaling_ranks),
                plan::weak_scaling(input, graph, request.scaling_ranks)};
    for (const plan::Scaling& scaling : scalings) {
      text += "\n" + plan::to_text(scaling);
      json[scaling.name + "_scaling"] = plan::to_json(scaling);
    }
  }
  if (!request.json.empty()) write_file_atomic(request.json, json.dump(2) + "\n");
  if (!request.svg.empty()) {
    if (scalings.empty())
      throw ConfigError("--plan-svg", "there is nothing to plot", "add --scaling RANKS");
    write_file_atomic(request.svg, plan::to_svg(scalings, "efficiency on " + input.machine.name));
  }
  return text;
}

}  // namespace aifs::app
