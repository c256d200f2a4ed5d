// SPDX-License-Identifier: Apache-2.0
#include "app/run/weights_match.h"

#include "core/check.h"
#include "core/join.h"

namespace aifs::app {

namespace {

// Empty: it is the same, or allowed to be another, which the text says.
std::string compare_graphs(const train::CheckpointInfo& checkpoint, WeightUse use,
                           const RunConfig& config, const std::string& graph_hash) {
  if (checkpoint.meta.graph_hash == graph_hash) return "";
  const std::string what = concat("checkpoint '", checkpoint.path.string(),
                                  "' was trained on another graph than this configuration gives");
  constexpr const char* kRestore = "restore the options of section graph, or the graph file";
  if (use != WeightUse::kStart) throw DataError(what, kRestore);
  if (config.init.other_graph) return what;
  throw ConfigError("init.from", what,
                    concat(kRestore,
                           "; or say that another one is meant with init.other_graph, and name in "
                           "init.may_skip what does not fit"));
}

}  // namespace

std::vector<std::string> check_weights(const train::CheckpointInfo& checkpoint, WeightUse use,
                                       const RunConfig& config, const std::string& graph_hash) {
  std::vector<std::string> warnings;
  const std::string graph = compare_graphs(checkpoint, use, config, graph_hash);
  if (!graph.empty()) warnings.push_back(graph);
  RunConfig copy = config;  // binding takes what it may change
  const std::string& before = checkpoint.meta.config_json;
  const std::vector<std::string> network = network_differences(before, copy);
  if (!network.empty()) {
    const std::string what = concat("the weights of checkpoint '", checkpoint.path.string(),
                                    "' were trained in another network: ", join(network, "; "));
    if (use != WeightUse::kStart)
      throw DataError(what,
                      "restore these options; or start a new run from the weights with "
                      "init.from, if another network is meant");
    warnings.push_back(what);
  }
  if (use == WeightUse::kStart || use == WeightUse::kForecast) return warnings;
  const bool scores = use == WeightUse::kScore;
  const std::vector<std::string> keys =
      scores ? score_keys(before, copy) : differing_keys(before, copy);
  if (!keys.empty()) {
    warnings.push_back(concat("the configuration differs from the one of checkpoint '",
                              checkpoint.path.string(), "' in what determines the ",
                              scores ? "scores: " : "numbers: ", join(keys, ", ")));
  }
  return warnings;
}

std::vector<std::string> to_lines(const train::InitReport& report) {
  std::vector<std::string> lines;
  for (const std::string& text : report.left_out)
    lines.push_back(concat(
        "init: ", text, "; ",
        text.ends_with("is not in this model") ? "it is not used" : "it keeps its first value"));
  for (const std::string& name : report.own)
    lines.push_back(concat("init: '", name,
                           "' differs and follows from data and graph of this "
                           "run, not from the checkpoint"));
  return lines;
}

}  // namespace aifs::app
