// SPDX-License-Identifier: Apache-2.0
// `aifs-train graph ...` as a user calls it.
#include <algorithm>
#include <deque>
#include <functional>
#include <regex>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "graph/graph_file.h"
#include "tests/app/page_data.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::json;

namespace {

test::CommandResult graph_command(const std::string& arguments) {
  return test::run_command(
      concat("'", test::program("aifs-train").string(), "' graph ", arguments));
}

// A command that must succeed; gives what it prints.
std::string output(const std::string& arguments) {
  const test::CommandResult result = graph_command(arguments);
  INFO(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

const std::string kTiny = "--config '" + test::tiny_config() + "'";

// The graph of the tiny configuration in a file.
class TinyGraph {
 public:
  TinyGraph() { output(concat("build ", kTiny, " --out '", file(), "'")); }
  std::string file(const char* name = "tiny.nc") const { return (folder_.path() / name).string(); }
  graph::Graph read() const { return graph::load_graph(file()).graph; }
  // Writes a graph beside it; gives the name of the file.
  std::string write(const char* name, const graph::Graph& graph) const {
    graph::save_graph(file(name), graph, "of a test");
    return file(name);
  }

 private:
  test::TemporaryFolder folder_;
};

// Writes a graph as tools/anemoi_graph.py does; `edit` changes the items first.
std::string write_tensors(const fs::path& path, const graph::Graph& graph,
                          const std::function<void(std::vector<SafetensorsItem>&)>& edit = {}) {
  std::vector<SafetensorsItem> items;
  std::deque<std::vector<float>> floats;
  std::deque<std::vector<int32_t>> integers;
  for (const graph::NodeSet& nodes : graph.node_sets) {
    std::vector<float>& latlon = floats.emplace_back();
    for (size_t i = 0; i < nodes.lat_rad.size(); ++i)
      latlon.insert(latlon.end(), {nodes.lat_rad[i], nodes.lon_rad[i]});
    items.push_back({concat("nodes/", nodes.name, "/latlon_rad"),
                     DType::kF32,
                     {nodes.num_nodes(), 2},
                     latlon.data()});
    for (const auto& [name, attribute] : nodes.attributes)
      items.push_back({concat("nodes/", nodes.name, "/", name),
                       DType::kF32,
                       {nodes.num_nodes(), attribute.width},
                       attribute.values.data()});
  }
  for (const graph::EdgeSet& edges : graph.edge_sets) {
    const std::string prefix = concat("edges/", edges.source, "_to_", edges.target, "/");
    std::vector<int32_t>& index = integers.emplace_back(edges.source_index);
    index.insert(index.end(), edges.target_index.begin(), edges.target_index.end());
    items.push_back({prefix + "edge_index", DType::kI32, {2, edges.num_edges()}, index.data()});
    for (const auto& [name, attribute] : edges.attributes)
      items.push_back({prefix + name,
                       DType::kF32,
                       {edges.num_edges(), attribute.width},
                       attribute.values.data()});
  }
  if (edit) edit(items);
  write_safetensors(path, items, {{"origin", "graph.pt of Anemoi"}});
  return path.string();
}

void require_refused(const std::string& arguments, int exit_code, const std::string& text) {
  const test::CommandResult result = graph_command(arguments);
  INFO(arguments);
  INFO(result.out << result.err);
  CHECK(result.exit_code == exit_code);
  CHECK_THAT(result.err, ContainsSubstring(text));
}

}  // namespace

TEST_CASE("a built graph is what info counts and a run trains on", "[graph_tools]") {
  const TinyGraph tiny;
  const graph::Graph graph = tiny.read();
  const std::string text = output(concat("info '", tiny.file(), "'"));
  CHECK(text.find("nodes  data") == 0);
  const Json json = Json::parse(output(concat("info '", tiny.file(), "' --json")));
  REQUIRE(json["nodes"].size() == 2);
  CHECK(json["nodes"][0]["count"] == graph.node_sets[0].num_nodes());
  CHECK(json["nodes"][0]["attributes"]["area_weight"]["shape"] ==
        Json({graph.node_sets[0].num_nodes(), 1}));
  REQUIRE(json["edges"].size() == 3);
  for (size_t i = 0; i < 3; ++i)
    CHECK(json["edges"][i]["count"] == graph.edge_sets[i].num_edges());
  CHECK(json["edges"][2]["of_target"]["min"] == 3.0);
  CHECK(json["edges"][2]["of_target"]["max"] == 3.0);
  const fs::path run = tiny.file("run");
  const auto trained =
      test::run_train(run, concat("--set train.max_steps=2 --set graph.file='", tiny.file(), "'"));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string card = read_file(run / "train.log");
  CHECK_THAT(card, ContainsSubstring("; loaded in "));
  CHECK_THAT(card, ContainsSubstring("hidden->data 3 / 3 / 3 a target, "));
}

TEST_CASE("runs of one configuration share the graph of a cache", "[graph_tools]") {
  const TinyGraph tiny;
  const fs::path cache = tiny.file("graphs");
  const std::string options =
      concat("--set train.max_steps=2 --set graph.file= --set graph.cache='", cache.string(), "'");
  const auto card_of = [&](const char* run, const std::string& more) {
    const auto trained = test::run_train(tiny.file(run), options + more);
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
    return read_file(fs::path(tiny.file(run)) / "train.log");
  };
  const auto num_files = [&] { return std::distance(fs::directory_iterator(cache), {}); };
  CHECK_THAT(card_of("first", ""), ContainsSubstring("; built in "));
  CHECK(num_files() == 1);
  CHECK_THAT(card_of("second", ""), ContainsSubstring("; loaded in "));
  CHECK_THAT(card_of("third", " --set graph.decoder.num_neighbours=2"),
             ContainsSubstring("; built in "));
  CHECK(num_files() == 2);
  // Looking takes from the cache, and adds nothing.
  output(concat("info ", kTiny, " --set graph.file= --set graph.cache='", cache.string(),
                "' --set graph.decoder.num_neighbours=1"));
  CHECK(num_files() == 2);
}

TEST_CASE("a configuration with a named grid needs no dataset", "[graph_tools]") {
  const Json json =
      Json::parse(output(concat("info ", kTiny,
                                " --json --set data.kind=anemoi --set data.dataset=/no/such "
                                "--set data.normalizer.std=[] --set graph.grid=o8")));
  CHECK(json["nodes"][0]["count"] == 544);
}

TEST_CASE("the setting that info proposes leaves no node without edges", "[graph_tools]") {
  const auto unconnected = [](double factor) {
    return Json::parse(output(concat(
        "info ", kTiny, " --json --set graph.encoder.cutoff_factor=", factor)))["unconnected"];
  };
  const Json found = unconnected(0.4);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0]["set"] == "data");
  CHECK(found[0]["no_edge_to"] == "hidden");
  const std::string text = output(concat("info ", kTiny, " --set graph.encoder.cutoff_factor=0.4"));
  double factor = 0.0;
  for (const Json& nodes : found) {
    CHECK(nodes["count"] == nodes["nodes"].size());
    const std::string reason = nodes["reason"];
    INFO(reason);
    CHECK_THAT(text, ContainsSubstring(reason));
    std::smatch match;
    REQUIRE(std::regex_search(reason, match,
                              std::regex("leaves none: graph.encoder.cutoff_factor ([0-9.]+)")));
    factor = std::max(factor, std::stod(match[1].str()));
  }
  CHECK(unconnected(factor).empty());
}

TEST_CASE("equal graphs end with exit code 0, others with 8", "[graph_tools]") {
  const TinyGraph tiny;
  graph::Graph other = tiny.read();
  CHECK(output(concat("compare '", tiny.file(), "' '", tiny.write("equal.nc", other), "'")) ==
        "the graphs are equal\n");
  other.edge_sets[0].attributes.at("edge_length").values[7] += 0.5F;
  other.edge_sets[2].source_index.pop_back();
  other.edge_sets[2].target_index.pop_back();
  other.edge_sets[2].attributes.clear();
  const auto result =
      graph_command(concat("compare '", tiny.file(), "' '", tiny.write("other.nc", other), "'"));
  CHECK(result.exit_code == 8);
  CHECK_THAT(result.out, ContainsSubstring("attribute 'edge_length': largest difference 0.5"));
  CHECK_THAT(result.out, ContainsSubstring("edges hidden->data: 1 only in A ("));
  CHECK_THAT(result.out, ContainsSubstring("attribute 'edge_dirs': only in A"));
}

TEST_CASE("the page holds the graph", "[graph_tools]") {
  const TinyGraph tiny;
  output(concat("plot '", tiny.file(), "' --out '", tiny.file("page.html"), "'"));
  const std::string page = read_file(tiny.file("page.html"));
  CHECK(page.find("http://www.w3.org/2000/svg") == page.find("http"));  // a name, not an address
  CHECK(page.find("http", page.find("http") + 4) == std::string::npos);
  CHECK(page.find("SCRIPT@") == std::string::npos);
  const Json data = test::graph_of_page(page);
  const graph::Graph graph = tiny.read();
  REQUIRE(data["nodes"].size() == graph.node_sets.size());
  for (size_t i = 0; i < graph.node_sets.size(); ++i) {
    CHECK(data["nodes"][i]["name"] == graph.node_sets[i].name);
    CHECK(test::floats_of_base64(data["nodes"][i]["lat"]) == graph.node_sets[i].lat_rad);
    CHECK(test::floats_of_base64(data["nodes"][i]["lon"]) == graph.node_sets[i].lon_rad);
  }
  REQUIRE(data["edges"].size() == graph.edge_sets.size());
  for (size_t i = 0; i < graph.edge_sets.size(); ++i) {
    const Json& edges = data["edges"][i];
    CHECK(edges["source"] == graph.edge_sets[i].source);
    CHECK(edges["target"] == graph.edge_sets[i].target);
    CHECK(edges["every"] == 1);
    CHECK(test::indices_of_base64(edges["source_index"]) == graph.edge_sets[i].source_index);
    CHECK(test::indices_of_base64(edges["target_index"]) == graph.edge_sets[i].target_index);
  }
}

TEST_CASE("a page of too many edges has those of every so many targets", "[graph_tools]") {
  const TinyGraph tiny;
  output(concat("plot '", tiny.file(), "' --max-edges 900 --out '", tiny.file("page.html"), "'"));
  const Json data = test::graph_of_page(read_file(tiny.file("page.html")));
  const graph::Graph graph = tiny.read();
  int64_t thinned = 0;
  for (size_t i = 0; i < graph.edge_sets.size(); ++i) {
    const graph::EdgeSet& whole = graph.edge_sets[i];
    const Json& edges = data["edges"][i];
    const int64_t every = edges["every"];
    std::vector<int32_t> sources, targets;
    for (size_t e = 0; e < whole.source_index.size(); ++e) {
      if (whole.target_index[e] % every != 0) continue;
      sources.push_back(whole.source_index[e]);
      targets.push_back(whole.target_index[e]);
    }
    CHECK(edges["count"] == whole.num_edges());
    CHECK(edges["kept"] == sources.size());
    CHECK(test::indices_of_base64(edges["source_index"]) == sources);
    CHECK(test::indices_of_base64(edges["target_index"]) == targets);
    thinned += every > 1 ? 1 : 0;
  }
  CHECK(thinned > 0);
}

TEST_CASE("nodes without edges are marked in the page", "[graph_tools]") {
  const TinyGraph tiny;
  graph::Graph graph = tiny.read();
  graph::EdgeSet& edges = graph.edge_sets[0];
  std::vector<int32_t> sources, targets;
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    if (edges.source_index[e] == 3 || edges.source_index[e] == 200) continue;
    sources.push_back(edges.source_index[e]);
    targets.push_back(edges.target_index[e]);
  }
  edges = {edges.source, edges.target, sources, targets, {}};
  std::vector<int32_t> unseen;  // four nodes are outside all radii from the start
  for (int32_t node = 0; node < 544; ++node)
    if (std::find(sources.begin(), sources.end(), node) == sources.end()) unseen.push_back(node);
  REQUIRE(unseen == std::vector<int32_t>{3, 20, 32, 200, 500, 512});
  output(
      concat("plot '", tiny.write("orphans.nc", graph), "' --out '", tiny.file("page.html"), "'"));
  const Json data = test::graph_of_page(read_file(tiny.file("page.html")));
  REQUIRE(data["orphans"].size() == 1);
  CHECK(data["orphans"][0]["set"] == "data");
  CHECK(data["orphans"][0]["is_data"] == true);
  CHECK(test::indices_of_base64(data["orphans"][0]["nodes"]) == unseen);
  CHECK_THAT(data["findings"][0].get<std::string>(),
             ContainsSubstring("6 of 544 (1.1 %) data nodes have no edge to 'hidden'"));
}

TEST_CASE("names cannot end the page's element", "[graph_tools]") {
  const TinyGraph tiny;
  const std::string name = "a<!--<script>";
  graph::Graph graph;
  graph.node_sets = {{name, {0.0F, 0.1F}, {0.0F, 0.1F}, {}}};
  graph.edge_sets = {{name, name, {0}, {1}, {}}};
  output(concat("plot '", tiny.write("names.nc", graph), "' --out '", tiny.file("page.html"), "'"));
  const std::string page = read_file(tiny.file("page.html"));
  CHECK(page.find(name) == std::string::npos);
  CHECK(test::graph_of_page(page)["nodes"][0]["name"] == name);
}

TEST_CASE("only the named sets are shown", "[graph_tools]") {
  const TinyGraph tiny;
  const Json json = Json::parse(output(concat("info '", tiny.file(), "' --sets hidden --json")));
  CHECK(json["nodes"].size() == 1);
  REQUIRE(json["edges"].size() == 1);
  CHECK(json["edges"][0]["source"] == "hidden");
}

TEST_CASE("what is no graph is refused with its name", "[graph_tools]") {
  const TinyGraph tiny;
  require_refused("info /no/such.nc", 3, "graph file '/no/such.nc' does not exist");
  write_file_atomic(tiny.file("text.nc"), "no graph");
  require_refused(concat("info '", tiny.file("text.nc"), "'"), 3, "text.nc'");
  const std::string whole = read_file(tiny.file());
  for (const size_t share : {10, 2}) {
    write_file_atomic(tiny.file("part.nc"), whole.substr(0, whole.size() - whole.size() / share));
    require_refused(concat("info '", tiny.file("part.nc"), "'"), 3, "part.nc'");
    require_refused(concat("compare '", tiny.file(), "' '", tiny.file("part.nc"), "'"), 3,
                    "part.nc'");
  }
  CHECK_FALSE(fs::exists(tiny.file("page.html")));
}

TEST_CASE("requests that are no request are refused", "[graph_tools]") {
  const TinyGraph tiny;
  require_refused(concat("info '", tiny.file(), "' --sets hiden"), 2, "nearest: 'hidden'");
  require_refused("info", 2, "--config FILE");
  require_refused(concat("info '", tiny.file(), "' ", kTiny), 2, "--config FILE");
  require_refused(concat("build --out '", tiny.file("a.nc"), "'"), 2, "--config FILE");
  require_refused(concat("build ", kTiny), 2, "--out");
  require_refused(concat("plot '", tiny.file(), "' --out '", tiny.file("."), "'"), 2,
                  "is a folder");
  require_refused(concat("info ", kTiny, " --set graph.encoder.kind=nonsense"), 2, "graph.encoder");
  require_refused("", 2, "subcommand");
}

TEST_CASE("an imported graph is trained on with its own edges in their order", "[graph_tools]") {
  const TinyGraph tiny;
  graph::Graph graph = tiny.read();
  graph::EdgeSet& edges = graph.edge_sets[0];
  std::reverse(edges.source_index.begin(), edges.source_index.end());
  std::reverse(edges.target_index.begin(), edges.target_index.end());
  edges.source_index.pop_back();  // no recipe gives these edges
  edges.target_index.pop_back();
  for (auto& [name, attribute] : edges.attributes)
    attribute.values.resize(attribute.values.size() - static_cast<size_t>(attribute.width));
  const std::string tensors = write_tensors(tiny.file("graph.safetensors"), graph);
  const std::string printed =
      output(concat("import '", tensors, "' --out '", tiny.file("given.nc"), "'"));
  CHECK_THAT(printed, ContainsSubstring("nodes  data"));
  CHECK(output(concat("compare '", tiny.file("given.nc"), "' '", tiny.write("same.nc", graph),
                      "'")) == "the graphs are equal\n");
  CHECK_THAT(output(concat("info '", tiny.file("given.nc"), "'")),
             ContainsSubstring("from    graph.pt of Anemoi\n"));
  const std::string given =
      concat("--set graph.file='", tiny.file("given.nc"),
             "' --set graph.given=true --set graph.hidden=null --set graph.encoder=null "
             "--set graph.processor=null --set graph.decoder=null");
  const fs::path run = tiny.file("run");
  const auto trained = test::run_train(run, concat("--set train.max_steps=1 ", given));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(read_file(run / "train.log"), ContainsSubstring("; loaded in "));
  const auto forgotten = test::run_train(
      tiny.file("other_run"),
      concat("--set train.max_steps=1 --set graph.file='", tiny.file("given.nc"), "'"));
  CHECK(forgotten.exit_code == 2);
  CHECK_THAT(forgotten.err, ContainsSubstring("graph.given takes it as it is"));
}

TEST_CASE("tensors that are no graph are refused by name", "[graph_tools]") {
  const TinyGraph tiny;
  const graph::Graph graph = tiny.read();
  const auto refuse = [&](const std::function<void(std::vector<SafetensorsItem>&)>& edit,
                          const std::string& text) {
    const std::string file = write_tensors(tiny.file("bad.safetensors"), graph, edit);
    require_refused(concat("import '", file, "' --out '", tiny.file("bad.nc"), "'"), 3, text);
    CHECK_FALSE(fs::exists(tiny.file("bad.nc")));
  };
  using Items = std::vector<SafetensorsItem>;
  const auto named = [](Items& items, const std::string& name) {
    return std::find_if(items.begin(), items.end(),
                        [&](const SafetensorsItem& item) { return item.name == name; });
  };
  refuse([](Items& items) { items.erase(items.begin(), items.end() - 1); }, "no nodes in it");
  refuse([](Items& items) { items.resize(2); }, "no edges in it");
  refuse([&](Items& items) { items.erase(named(items, "nodes/hidden/latlon_rad")); },
         "no nodes 'hidden'");
  refuse(
      [&](Items& items) {
        auto index = named(items, "edges/data_to_hidden/edge_index");
        index->shape = {index->shape[1], 2};
      },
      "is not of shape (2, M)");
  std::vector<float> degrees;
  refuse(
      [&](Items& items) {
        auto latlon = named(items, "nodes/data/latlon_rad");
        degrees.assign(static_cast<size_t>(latlon->shape[0]) * 2, 45.0F);
        latlon->data = degrees.data();
      },
      "rad");
  require_refused(concat("import '", tiny.file(), "' --out '", tiny.file("bad.nc"), "'"), 3,
                  "tiny.nc");
  require_refused(concat("import '", tiny.file("none"), "' --out '", tiny.file("bad.nc"), "'"), 3,
                  "none");
}
