// SPDX-License-Identifier: Apache-2.0
#include "app/graph_tools/options.h"

#include <CLI/CLI.hpp>

#include "app/data_tools/cli_checks.h"

namespace aifs::app {

namespace {

constexpr const char* kGraphFooter = R"(Examples
  aifs-train graph build --config configs/o96.json --set graph.grid=o96 --out o96.nc
  aifs-train graph info o96.nc
  aifs-train graph info --config configs/n320.json --json
  aifs-train graph compare old.nc new.nc
  aifs-train graph plot --config configs/demo.json --out globe.html
  aifs-train graph import anemoi_graph.safetensors --out graph.nc

A configuration whose graph.grid is a named grid needs no dataset.
Exit code 8: the graphs of compare differ.)";

class GraphCommands {
 public:
  GraphCommands(CLI::App& graph, GraphCommand& command) : graph_(graph), c_(command) {}

  CLI::App& add(const char* name, const char* what, GraphCommand::Kind kind) {
    CLI::App* app = graph_.add_subcommand(name, what);
    app->fallthrough();  // --config and --set may follow
    app->callback([this_command = &c_, kind] { this_command->kind = kind; });
    return *app;
  }
  void source(CLI::App& app) {
    app.add_option("FILE", c_.file, "graph file; or --config FILE");
    app.add_option("--sets", c_.sets, "only these node sets, and the edges among them")
        ->delimiter(',');
  }

 private:
  CLI::App& graph_;
  GraphCommand& c_;
};

}  // namespace

CLI::App* add_graph_commands(CLI::App& app, GraphCommand& c) {
  CLI::App* graph =
      app.add_subcommand("graph", "build graphs, look at them and compare them (docs/graphs.md)");
  graph->require_subcommand(1);
  graph->fallthrough();
  graph->footer(kGraphFooter);
  GraphCommands commands(*graph, c);
  commands
      .add("build", "write the graph of a configuration into a file", GraphCommand::Kind::kBuild)
      .add_option("--out", c.out, "new file, to be named in graph.file")
      ->required();
  CLI::App& info = commands.add(
      "info", "counts, degrees, lengths, attributes, and nodes without edges with the cause",
      GraphCommand::Kind::kInfo);
  commands.source(info);
  info.add_flag("--json", c.json, "print JSON");
  CLI::App& compare =
      commands.add("compare", "what differs between two graph files; exit code 8 if anything does",
                   GraphCommand::Kind::kCompare);
  compare.add_option("A", c.file, "graph file")->required();
  compare.add_option("B", c.other, "graph file")->required();
  compare.add_option("--tolerance", c.tolerance, "of attributes and coordinates (radians)")
      ->check(CLI::Range(0.0, 1e30));
  CLI::App& plot =
      commands.add("plot", "write a page for a browser: a globe to turn, with nodes and edges",
                   GraphCommand::Kind::kPlot);
  commands.source(plot);
  plot.add_option("--out", c.out, "new file, usually named *.html")->required();
  plot.add_option("--max-edges", c.max_edges,
                  "of more edges, those of every so many targets are in the page; 0: no limit")
      ->check(at_least(0))
      ->capture_default_str();
  CLI::App& import = commands.add(
      "import", "write a graph that tools/anemoi_graph.py took from Anemoi into a graph file",
      GraphCommand::Kind::kImport);
  import.add_option("TENSORS", c.file, "safetensors file of the graph")->required();
  import.add_option("--out", c.out, "new file, to be named in graph.file beside graph.given")
      ->required();
  return graph;
}

}  // namespace aifs::app
