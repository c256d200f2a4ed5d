// SPDX-License-Identifier: Apache-2.0
#include "app/run/run_graph.h"

#include "app/run/plan.h"
#include "core/check.h"
#include "graph/builder.h"
#include "graph/graph_slice.h"
#include "graph/nodes/tri_kinds.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/app/ranks.h"

using namespace aifs;
using namespace aifs::test;

namespace {

app::RunConfig tiny(const std::vector<std::string>& overrides = {}) {
  return app::load_config(tiny_config(), overrides);
}

app::PlanRequest request_for(int64_t ranks) {
  app::PlanRequest request;
  request.ranks = ranks;
  request.variables = {8, 6, 1};
  return request;
}

// Calls body(parts) on ranks that have divided the graph of a configuration.
void on_parts(const app::RunConfig& config, const graph::Graph& graph, int ranks,
              const std::function<void(const app::GraphParts&, int)>& body) {
  parallel::run_as_threads(ranks, [&](parallel::Communicator& group) {
    app::GraphParts parts;
    app::divide_graph(parts, graph::slice_of(graph, group.rank(), group.size()), config, group);
    body(parts, group.rank());
  });
}

// The runs of a test begin with the folder of the graph.
std::string in_cache(const TemporaryFolder& folder) {
  return concat(kThreeSteps, "--set graph.cache='", (folder.path() / "graphs").string(), "' ");
}

}  // namespace

TEST_CASE("a divided graph is planned as the whole", "[run_graph]") {
  app::RunConfig config = tiny({"parallel.model=3"});
  const graph::Graph graph = graph::build_graph(config.graph, {});
  const app::PlanRequest request = request_for(3);
  const plan::StepInput wanted = app::step_input(config, graph, request);
  const double memory = plan::plan_step(wanted, graph).memory.device();
  on_parts(config, graph, 3, [&](const app::GraphParts& parts, int) {
    const plan::StepInput input = parts.step_input(config, request);
    const plan::StepPlan plan = plan::plan_step(input, parts.division(input));
    AIFS_CHECK(plan.memory.device() == memory, plan.memory.device(), " bytes, not ", memory);
    AIFS_CHECK(plan.bytes("all-to-all") == plan::plan_step(wanted, graph).bytes("all-to-all"),
               "other rows");
    AIFS_CHECK(parts.num_edges("data", "hidden") == graph.edges("data", "hidden").num_edges(),
               "another number of edges");
    AIFS_CHECK(parts.num_edges("data", "none") == 0, "edges that there are not");
  });
  config.parallel = {};
  const app::PlanRequest alone = request_for(1);
  const plan::StepPlan one = plan::plan_step(app::step_input(config, graph, alone), graph);
  on_parts(config, graph, 3, [&](const app::GraphParts& parts, int) {
    const plan::StepInput input = parts.step_input(config, alone);
    AIFS_CHECK(
        plan::plan_step(input, parts.division(input)).flops.useful_step == one.flops.useful_step,
        "other products");
  });
}

TEST_CASE("no rank has more than its part of the edges, but for those of matrices", "[run_graph]") {
  app::RunConfig config = tiny({"parallel.model=4"});
  graph::Graph graph = graph::build_graph(config.graph, {});
  graph.edge_sets.push_back({"data", "data", {0, 1, 2}, {1, 2, 3}, {{"w", {1, {1, 2, 3}}}}});
  std::vector<int64_t> edges(4, 0);
  on_parts(config, graph, 4, [&](const app::GraphParts& parts, int rank) {
    for (const graph::EdgeSet& set : parts.graph.edge_sets)
      AIFS_CHECK(set.num_edges() == (set.source == "data" && set.target == "data" ? 3 : 0),
                 set.source, "->", set.target, " has ", set.num_edges(), " edges");
    for (const graph::OwnEdges& own : parts.divided->own)
      edges[static_cast<size_t>(rank)] += static_cast<int64_t>(own.local.position.size());
  });
  int64_t all = 0, total = 0;
  for (const graph::EdgeSet& set : graph.edge_sets)
    total += set.num_edges();
  for (const int64_t count : edges) {
    all += count;
    REQUIRE(count < total / 3);
  }
  REQUIRE(all == total);
}

TEST_CASE("ranks that read their parts of a stored graph train with the bits of one that is sent",
          "[run_graph]") {
  const TemporaryFolder folder;
  for (const int ranks : {2, 3}) {
    const std::string model = concat("--set parallel.model=", ranks, " ");
    const fs::path sent = train_ranks(folder, ranks, concat("sent", ranks), kThreeSteps + model);
    // The first one builds and stores it.
    for (const char* name : {"built", "read"}) {
      const fs::path dir =
          train_ranks(folder, ranks, concat(name, ranks), in_cache(folder) + model);
      require_same_bits(dir, sent);
      REQUIRE(read_file(dir / "validation.jsonl") == read_file(sent / "validation.jsonl"));
    }
  }
  REQUIRE(std::distance(fs::directory_iterator(folder.path() / "graphs"), {}) == 1);
}

TEST_CASE("replicas, stages and slices of layers read their parts, too", "[run_graph]") {
  const TemporaryFolder folder;
  int number = 0;
  for (const char* layout : {"--set parallel.data=2", "--set parallel.tensor=2",
                             "--set parallel.pipeline=2 --set train.accumulate_batches=2"}) {
    const std::string more = concat("--set parallel.model=2 ", layout, " ");
    const fs::path sent = train_ranks(folder, 4, concat("sent", ++number), kThreeSteps + more);
    const fs::path read = train_ranks(folder, 4, concat("read", number), in_cache(folder) + more);
    require_same_bits(read, sent);
  }
}

TEST_CASE("ranks of several jobs may begin with one empty folder of graphs", "[run_graph]") {
  const TemporaryFolder folder;
  const std::string more = in_cache(folder) + "--set parallel.model=2 ";
  std::string jobs;
  for (const char* name : {"a", "b", "c"})
    jobs += concat("(", mpirun(2), train_command(folder.path() / name, more), ") & ");
  REQUIRE(run_command(jobs + "wait").exit_code == 0);
  for (const char* name : {"b", "c"})
    require_same_bits(folder.path() / name, folder.path() / "a");
  REQUIRE(std::distance(fs::directory_iterator(folder.path() / "graphs"), {}) == 1);
}

TEST_CASE("a damaged file of the user's ends all ranks", "[run_graph]") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "graph.nc";
  const std::string more = concat(kThreeSteps, "--set graph.file='", file.string(), "' ");
  train_ranks(folder, 2, "first", more + "--set parallel.model=2");
  std::string content = read_file(file);
  content[content.size() / 2] ^= 1;
  write_file_atomic(file, content);
  const auto result = run_ranks(2, folder.path() / "second", more + "--set parallel.model=2");
  REQUIRE(result.exit_code == 3);
  REQUIRE_THAT(result.err, ContainsSubstring("is damaged"));
}
