// SPDX-License-Identifier: Apache-2.0
// Runs of models that are not one encoder, one mesh and one decoder: they train, resume to the bit,
// and are exported under Anemoi's names.
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "graph/edges/edge_attributes.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/graph_file.h"
#include "graph/nodes/tri_nodes.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_train;

namespace {

constexpr int64_t kNeighbours = 3;

std::string quoted(const fs::path& path) {
  return concat("'", path.string(), "'");
}

void require_success(const test::CommandResult& result) {
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

std::string mesh_name(int64_t level) {
  return concat("hidden_", level);
}

graph::EdgeSet neighbour_edges(const graph::NodeSet& source, const graph::NodeSet& target) {
  graph::EdgeList list = graph::knn_edges(source, target, kNeighbours, 1);
  graph::EdgeSet edges{source.name, target.name, list.source_index, list.target_index, {}};
  const graph::EdgeEnds ends{source, target, edges.source_index, edges.target_index};
  edges.attributes = {{"edge_length", {1, graph::edge_length<float>(ends)}},
                      {"edge_dirs", {2, graph::edge_direction<float>(ends)}}};
  return edges;
}

// The graph file of the tiny configuration with coarser meshes below its own; what to set for it.
std::string hierarchy(const fs::path& folder, int64_t num_meshes) {
  const fs::path file = folder / "graph.nc";
  require_success(run_train(folder / "flat",
                            concat("--set train.max_steps=1 --set graph.file=", quoted(file))));
  graph::StoredGraph stored = graph::load_graph(file);
  for (graph::NodeSet& nodes : stored.graph.node_sets) {
    if (nodes.name == "hidden") nodes.name = mesh_name(0);
  }
  for (graph::EdgeSet& edges : stored.graph.edge_sets) {
    for (std::string* end : {&edges.source, &edges.target}) {
      if (*end == "hidden") *end = mesh_name(0);
    }
  }
  std::string meshes = concat('"', mesh_name(0), '"');
  for (int64_t level = 1; level < num_meshes; ++level) {
    const graph::TriNodes nodes = graph::tri_nodes(2 - level);
    const graph::NodeSet mesh{mesh_name(level), nodes.lat_rad, nodes.lon_rad, {}};
    const graph::NodeSet finer = stored.graph.nodes(mesh_name(level - 1));
    for (const auto& [source, target] :
         {std::pair(mesh, mesh), std::pair(finer, mesh), std::pair(mesh, finer)})
      stored.graph.edge_sets.push_back(neighbour_edges(source, target));
    stored.graph.node_sets.push_back(mesh);
    meshes += concat(",\"", mesh.name, '"');
  }
  graph::save_graph(file, stored.graph, stored.options_hash);
  return concat("--set graph.file=", quoted(file), " --set 'model.hierarchy.meshes=[", meshes,
                "]' ");
}

// Six steps at once, and in two goes.
void require_resumes(const fs::path& folder, const std::string& options) {
  const fs::path whole = folder / "whole", parted = folder / "parted";
  require_success(run_train(whole, options + " --set train.max_steps=6"));
  require_success(run_train(parted, options + " --set train.max_steps=3"));
  require_success(run_train(parted, options + " --set train.max_steps=6 --resume"));
  for (const char* file : {"parameters.safetensors", "optimizer.safetensors"}) {
    INFO(file);
    const fs::path last = fs::path("checkpoints/step-00000006") / file;
    REQUIRE(read_file(whole / last) == read_file(parted / last));
  }
}

}  // namespace

TEST_CASE("hierarchies train and resume to the bit", "[families]") {
  const test::TemporaryFolder folder;
  const std::string two = hierarchy(folder.path(), 2);
  SECTION("of gnn, with rollout") {
    require_resumes(folder.path(),
                    two + "--set train.rollout.start=2 --set train.rollout.maximum=2");
  }
  SECTION("of attention, processed on all meshes") {
    std::string options = two + "--set model.hierarchy.level_processing=true";
    for (const char* part :
         {"encoder", "processor", "decoder", "hierarchy.upscale", "hierarchy.downscale"}) {
      options +=
          concat(" --set model.", part, ".kind=graph_transformer --set model.", part, ".heads=2");
    }
    require_resumes(folder.path(), options);
  }
}

TEST_CASE("the plan of a hierarchy knows its parameters", "[families]") {
  const test::TemporaryFolder folder;
  const std::string options = hierarchy(folder.path(), 3) +
                              "--set model.hierarchy.level_processing=true "
                              "--set model.residual.kind=truncated "
                              "--set model.residual.truncation_grid=tri1 "
                              "--set model.hierarchy.upscale.trainable=2 "
                              "--set model.processor.trainable=1 "
                              "--set 'model.trainable_parameters.nodes={\"hidden_0\": 3, "
                              "\"hidden_2\": 1, \"data\": 5}'";
  const fs::path json = folder.path() / "plan.json", run = folder.path() / "run";
  require_success(run_train(run, concat(options, " --dry-run --plan-json ", quoted(json))));
  // A budget is kept by plans, too.
  require_success(run_train(run, options + " --set train.max_steps=1 --set model.memory_budget=1"));
  const auto parameters = nlohmann::json::parse(read_file(json)).at("parameters").get<int64_t>();
  REQUIRE_THAT(read_file(run / "train.log"),
               ContainsSubstring(concat(", ", parameters, " parameters")));
}

TEST_CASE("meshes and edges that a graph has not are told by the option", "[families]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const std::string two = hierarchy(folder.path(), 2);
  for (const char* what : {" --set train.max_steps=1", " --dry-run"}) {
    const auto fault = [&](const std::string& options) {
      const test::CommandResult result = run_train(run, concat(two, options, what));
      REQUIRE(result.exit_code == 2);
      return result.err;
    };
    REQUIRE_THAT(fault("--set 'model.hierarchy.meshes=[\"hidden_0\",\"nosuch\"]'"),
                 ContainsSubstring("'model.hierarchy.meshes': the graph has no nodes 'nosuch'"));
    REQUIRE_THAT(fault("--set 'model.hierarchy.meshes=[\"hidden_1\",\"hidden_0\"]'"),
                 ContainsSubstring("'model.encoder.kind': the graph has no edges data->hidden_1"));
  }
}

TEST_CASE("an ensemble draws its noise on the data nodes, and each part has its norms",
          "[families]") {
  const test::TemporaryFolder folder;
  const std::string ensemble =
      "--set model.processor.kind=graph_transformer --set model.processor.heads=2 "
      "--set model.processor.qk_norm=true --set model.processor.qk_norm_eps=1e-4 "
      "--set model.encoder.norm_eps=1e-3 --set loss.kind=crps --set model.ensemble.members=2 "
      "--set model.ensemble.noise=conditioning --set model.ensemble.noise_nodes=data "
      "--set model.ensemble.noise_normalised=true ";
  require_resumes(folder.path(), ensemble + "--set model.ensemble.noise_weights=edge_length");
  for (const char* what : {" --set train.max_steps=1", " --check-config"}) {
    const auto fault = [&](const std::string& options) {
      const test::CommandResult result =
          run_train(folder.path() / "fault", concat(ensemble, options, what));
      INFO(result.out << result.err);
      REQUIRE(result.exit_code == 2);
      return result.out + result.err;
    };
    REQUIRE_THAT(fault("--set model.ensemble.noise_weights=nosuch"),
                 ContainsSubstring("'model.ensemble.noise_weights'"));
    REQUIRE_THAT(fault("--set model.ensemble.noise_nodes=nosuch"),
                 ContainsSubstring("'model.ensemble.noise_nodes': the graph has no edges"));
  }
}

TEST_CASE("an autoencoder trains and resumes to the bit", "[families]") {
  const test::TemporaryFolder folder;
  require_resumes(folder.path(),
                  "--set model.encoder.kind=graph_transformer --set model.encoder.heads=2 "
                  "--set model.decoder.kind=graph_transformer --set model.decoder.heads=2 "
                  "--set model.processor.kind=none --set model.latent_skip=false "
                  "--set model.residual.kind=none --set data.multistep_input=1 "
                  "--set 'model.decoder.target_features=[\"coordinates\"]'");
}

TEST_CASE("exported names of hierarchies and their order are Anemoi's", "[families]") {
  for (const auto& [file, meshes] :
       {std::pair("gnn_3_meshes.txt", 3), std::pair("graph_transformer_2_meshes.txt", 2)}) {
    INFO(file);
    std::istringstream lines(read_file(test::fixture("hierarchies") / file));
    std::string options, name;
    std::getline(lines, options);
    std::vector<std::string> expected;
    while (std::getline(lines, name))
      expected.push_back(name);
    const test::TemporaryFolder folder;
    const fs::path run = folder.path() / "run", out = folder.path() / "out";
    require_success(run_train(
        run, concat(hierarchy(folder.path(), meshes), options, " --set train.max_steps=1")));
    require_success(test::run_command(
        concat(quoted(test::program("aifs-train")), " export ", quoted(run), " ", quoted(out))));
    REQUIRE(SafetensorsFile(out / "model.safetensors").names() == expected);
  }
}
