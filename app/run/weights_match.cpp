// SPDX-License-Identifier: Apache-2.0
#include "app/run/weights_match.h"

#include "core/check.h"
#include "core/join.h"
#include "train/optim/adapters.h"

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
  using train::InitUse;
  std::vector<std::string> lines;
  for (const auto& [name, use, text] : report.tensors) {
    if (text.empty() || train::is_adapter(name)) continue;  // the table counts them
    const char* end = use == InitUse::kNew       ? "; it keeps its first value"
                      : use == InitUse::kLeftOut ? "; it is not used"
                      : use == InitUse::kOwn     ? " of this run, not from the checkpoint"
                                                 : "";
    lines.push_back(
        concat("init: '", name, "' ", use == InitUse::kByVariable ? "has " : "", text, end));
  }
  return lines;
}

}  // namespace aifs::app
