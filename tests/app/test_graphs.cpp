// SPDX-License-Identifier: Apache-2.0
// Every file of configs/graphs over the tiny configuration: runs train on it, alone and on several
// ranks, and resume.
#include "tests/app/ranks.h"

using namespace aifs;
using namespace aifs::test;

namespace {

std::string set(const std::string& assignment) {
  return " --set '" + assignment + "'";
}

// A configuration of the tiny one and a graph, in a folder.
class GraphRun {
 public:
  explicit GraphRun(const std::string& graph) {
    const Json json{
        {"base",
         {tiny_config(), (source_folder() / "configs/graphs" / (graph + ".json")).string()}}};
    write_file_atomic(config(), json.dump());
  }

  std::string config() const { return (folder_.path() / "run.json").string(); }
  const TemporaryFolder& folder() const { return folder_; }
  fs::path run(const std::string& name, const std::string& more, int ranks = 1) const {
    const fs::path dir = folder_.path() / name;
    const std::string command = train_command(dir, more, config());
    const auto result = run_command(ranks > 1 ? mpirun(ranks) + command : command);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return dir;
  }

 private:
  TemporaryFolder folder_;
};

// Three steps whole, and in two goes.
void require_trains(const GraphRun& graph, const std::string& options) {
  const fs::path whole = graph.run("whole", kThreeSteps + options);
  for (const double loss : losses_of(whole))
    REQUIRE(std::isfinite(loss));
  REQUIRE(losses_of(whole).size() == 3);
  graph.run("parted", concat(kThreeSteps, options, set("train.max_steps=2")));
  const fs::path parted = graph.run("parted", concat(kThreeSteps, options, " --resume"));
  require_same_bits(parted, whole);
}

const std::string kSmallO8 = set("graph.hidden.grid=o8") + set("graph.grid=o16");

}  // namespace

TEST_CASE("a transformer trains on a Gaussian mesh without edges", "[graphs]") {
  const GraphRun graph("encoder_decoder_only");
  const std::string options =
      kSmallO8 + set("model.processor.kind=transformer") + set("model.processor.heads=2");
  require_trains(graph, options);
  const auto card = read_file(graph.folder().path() / "whole" / "train.log");
  REQUIRE_THAT(card, ContainsSubstring("544 hidden"));
  // A network that needs the edges says so.
  const auto refused = run_train(graph.folder().path() / "no", kSmallO8, graph.config());
  REQUIRE(refused.exit_code == 2);
  REQUIRE_THAT(refused.err, ContainsSubstring("no edges hidden->hidden"));
}

TEST_CASE("GNN and graph transformer train on meshes of other kinds, with learnt features",
          "[graphs]") {
  const std::string learnt = set("model.trainable_parameters.hidden=2") +
                             set("model.trainable_parameters.hidden_to_hidden=2") +
                             set("model.trainable_parameters.data_to_hidden=1");
  require_trains(GraphRun("gaussian_knn"), kSmallO8 + learnt);
  const std::string attention =
      set("model.processor.kind=graph_transformer") + set("model.processor.heads=2");
  require_trains(GraphRun("healpix"), set("graph.hidden.resolution=2") + learnt + attention);
}

TEST_CASE("hierarchies train on graphs that are built", "[graphs]") {
  const std::string two =
      set("graph.nodes.hidden_1.refinement=2") + set("graph.nodes.hidden_2.refinement=1");
  require_trains(GraphRun("hierarchical_2level"), two);
  require_trains(GraphRun("hierarchical_3level"), two + set("graph.nodes.hidden_3.refinement=0") +
                                                      set("model.hierarchy.level_processing=true"));
}

TEST_CASE("plans and checks know meshes of all kinds", "[graphs]") {
  const GraphRun graph("gaussian_knn");
  const fs::path plan = graph.folder().path() / "plan.json";
  const auto planned =
      run_train(graph.folder().path() / "plan",
                concat(kSmallO8, " --dry-run --plan-json '", plan.string(), "'"), graph.config());
  INFO(planned.err);
  REQUIRE(planned.exit_code == 0);
  REQUIRE(Json::parse(read_file(plan)).at("parameters").get<int64_t>() > 0);
  const auto checked =
      run_train(graph.folder().path() / "check", kSmallO8 + " --check-config", graph.config());
  INFO(checked.err);
  REQUIRE(checked.exit_code == 0);
  REQUIRE_THAT(checked.out, ContainsSubstring("544 hidden nodes"));
  const auto wrong =
      run_train(graph.folder().path() / "wrong",
                kSmallO8 + set("graph.processor={\"kind\": \"multi_scale\"}") + " --check-config",
                graph.config());
  REQUIRE(wrong.exit_code == 2);
  REQUIRE_THAT(wrong.err, ContainsSubstring("'graph.processor'"));
}

TEST_CASE("a graph of a cutout has its region, its boundary and its weights", "[graphs]") {
  for (const char* name : {"limited_area", "stretched_grid"}) {
    INFO(name);
    const GraphRun graph(name);
    std::string options = unmeasured_cells(graph.folder());
    const std::string base = (graph.folder().path() / "base.zarr").string();
    options += set(concat(R"(data.dataset={"cutout": [{"dataset": ")", base,
                          R"(", "area": [70, 0, 0, 90]}, ")", base,
                          R"("], "min_distance_km": 0, "statistics": ")", base, R"("})"));
    options += set("data.training.end=2020-01-03") + set("train.validation.every_epochs=0");
    const bool stretched = std::string(name) == "stretched_grid";
    // Rows at the poles have no cells of their own.
    if (stretched)
      options += set(R"(graph.nodes.data.attributes.area_weight={"kind": "cosine_latitude"})");
    options += stretched ? set("graph.nodes.hidden.global_refinement=1") +
                               set("graph.nodes.hidden.local_refinement=3")
                         : set("graph.nodes.hidden.refinement=3");
    options += set("graph.nodes.hidden.margin_km=1200");
    // A plan knows the region, and leaves no file that the run would take.
    const fs::path file = graph.folder().path() / "graph.nc";
    options += set("graph.file=" + file.string());
    const auto planned =
        run_train(graph.folder().path() / "plan", options + " --dry-run", graph.config());
    INFO(planned.out << planned.err);
    REQUIRE(planned.exit_code == 0);
    REQUIRE(!fs::exists(file));
    const fs::path dir = graph.run("run", kThreeSteps + options);
    for (const double loss : losses_of(dir))
      REQUIRE(std::isfinite(loss));
    // The file of the run is that of the region, which plans look for, too.
    REQUIRE(fs::exists(file));
    const auto again =
        run_train(graph.folder().path() / "plan", options + " --dry-run", graph.config());
    INFO(again.out << again.err);
    REQUIRE(again.exit_code == 0);
  }
}

TEST_CASE("plans take the attributes of the edges to the mesh, whichever come first", "[graphs]") {
  const GraphRun graph("hierarchical_2level");
  const std::string others =
      R"({"source": "data", "target": "data", "kinds": [{"kind": "knn", "num_neighbours": 3}],)"
      R"( "attributes": {"gap": {"kind": "length"}}})";
  std::string edges = others;
  for (const auto& [source, target] : {std::pair("data", "hidden_1"),
                                       {"hidden_1", "hidden_1"},
                                       {"hidden_1", "hidden_2"},
                                       {"hidden_2", "hidden_2"},
                                       {"hidden_2", "hidden_1"},
                                       {"hidden_1", "data"}})
    edges += concat(R"(,{"source": ")", source, R"(", "target": ")", target,
                    R"(", "kinds": [{"kind": "knn", "num_neighbours": 3}]})");
  const std::string options = set("graph.nodes.hidden_1.refinement=2") +
                              set("graph.nodes.hidden_2.refinement=1") +
                              set(concat("graph.edges=[", edges, "]"));
  const auto planned =
      run_train(graph.folder().path() / "plan", options + " --dry-run", graph.config());
  INFO(planned.out << planned.err);
  REQUIRE(planned.exit_code == 0);
}

TEST_CASE("graphs of other kinds train as on one rank when samples are divided", "[graphs]") {
  const std::string more = concat(kThreeSteps, set("train.precision=fp64"),
                                  set("optimizer.eps=1e-5"), set("train.validation.max_dates=1"));
  for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
           {"gaussian_knn", kSmallO8 + set("model.trainable_parameters.hidden_to_hidden=2")},
           {"encoder_decoder_only",
            kSmallO8 + set("model.processor.kind=transformer") + set("model.processor.heads=2")},
           {"healpix", set("graph.hidden.resolution=2")},
           {"hierarchical_2level",
            set("graph.nodes.hidden_1.refinement=2") + set("graph.nodes.hidden_2.refinement=1")}}) {
    INFO(name);
    const GraphRun graph(name);
    const fs::path one = graph.run("one", more + options);
    const fs::path two = graph.run("two", concat(more, options, set("parallel.model=2")), 2);
    require_alike(two, one, "fp64");
  }
}
