// SPDX-License-Identifier: Apache-2.0
#include "app/import_checkpoint.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "anemoi/model_checkpoint.h"
#include "anemoi/training_config.h"
#include "app/exchange.h"
#include "app/run/run_config.h"
#include "core/check.h"
#include "core/join.h"
#include "core/json_read.h"
#include "core/log.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAllow = "--allow-differences imports the weights all the same";

// What a checkpoint says of the weights that its training began with is over and done with, and
// what was scored on the way is of no use, whatever form it has.
void forget_past(Json& config) {
  for (const char* key :
       {"run_id", "fork_run_id", "load_weights_only", "transfer_learning", "validation_metrics"}) {
    if (config.contains("training") && config["training"].is_object())
      config["training"].erase(key);
  }
  for (const char* section : {"system", "hardware"}) {
    if (!config.contains(section) || !config[section].is_object()) continue;
    if (config[section].contains("input") && config[section]["input"].is_object())
      config[section]["input"].erase("warm_start");
  }
}

// True for keys of Anemoi's that make another function of the same weights.
bool shapes_model(const std::string& path) {
  return path.starts_with("model.") || path.starts_with("data.");
}

// Throws ConfigError for what of the model is not known here, unless that is allowed; the rest is
// said in the log. The graph is that of the checkpoint, whatever its options are.
void check_remarks(const std::vector<anemoi::Remark>& remarks, bool allowed) {
  std::vector<std::string> faults;
  for (const anemoi::Remark& remark : remarks) {
    if (remark.verdict != anemoi::Verdict::kNotHonoured || remark.path.starts_with("graph."))
      continue;
    const std::string text = concat(
        remark.path, remark.value.is_structured() ? "" : " = " + json_shown(remark.value, 60), ": ",
        remark.text);
    if (!shapes_model(remark.path) || allowed) {
      log::warning("not honoured: ", text);
    } else {
      faults.push_back(text);
    }
  }
  if (faults.empty()) return;
  throw ConfigError(
      "", concat("the checkpoint's model is not one of this program:\n  ", join(faults, "\n  ")),
      kAllow);
}

// The configuration of the checkpoint as one of ours, for a run on the checkpoint's own graph.
Json config_of(const anemoi::ModelCheckpoint& checkpoint, const ExchangeCommand& exchange) {
  Json theirs = *checkpoint.config();
  forget_past(theirs);
  const fs::path run(exchange.to);
  const anemoi::Imported imported = anemoi::import_training_config(theirs, run.filename().string());
  check_remarks(imported.remarks, exchange.allow_differences);
  Json own = imported.config();
  own["run"]["dir"] = exchange.to;
  if (checkpoint.base_seed()) own["run"]["seed"] = *checkpoint.base_seed();
  own["graph"] = Json{{"file", absolute_path(run / "graph.nc").string()}, {"given", true}};
  try {
    parse_config(own.dump(), {});
  } catch (const ConfigError& error) {
    const std::string origin = imported.target.origin_of(error.path());
    throw ConfigError(origin, concat("of the checkpoint is refused here: ", error.what()),
                      error.hint());
  }
  return own;
}

// Throws ConfigError where --config describes another model than the checkpoint does.
void check_differences(const RunConfig& config, const Json& of_checkpoint, bool allowed) {
  RunConfig copy = config, theirs = parse_config(of_checkpoint.dump(), {});
  std::vector<std::string> differences = network_differences(effective_json(theirs), copy);
  const auto compare = [&](const char* key, const std::vector<std::string>& before,
                           const std::vector<std::string>& now) {
    if (before != now)
      differences.push_back(
          concat(key, " was [", join(before, ", "), "] and is [", join(now, ", "), "]"));
  };
  compare("data.forcing", theirs.data.roles.forcing, config.data.roles.forcing);
  compare("data.diagnostic", theirs.data.roles.diagnostic, config.data.roles.diagnostic);
  if (differences.empty()) return;
  const std::string text =
      concat("--config differs from the model of the checkpoint: ", join(differences, "; "));
  if (!allowed) throw ConfigError("", text, concat("change these options; ", kAllow));
  log::warning(text);
}

RunConfig choose_config(const CommandLine& c, const anemoi::ModelCheckpoint& checkpoint) {
  const ExchangeCommand& exchange = *c.exchange;
  const bool has_config = checkpoint.config().has_value();
  if (c.config.empty()) {
    if (!has_config) {
      throw ConfigError("", concat("'", exchange.from, "' holds no configuration"),
                        "name that of the model: --config FILE");
    }
    return parse_config(config_of(checkpoint, exchange).dump(), c.overrides);
  }
  RunConfig config = load_config(c.config, with_graph_file(c));
  if (has_config)
    check_differences(config, config_of(checkpoint, exchange), exchange.allow_differences);
  return config;
}

}  // namespace

bool is_checkpoint_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::vector<std::string> with_graph_file(const CommandLine& command) {
  const fs::path graph = absolute_path(fs::path(command.exchange->to) / "graph.nc");
  std::vector<std::string> overrides = command.overrides;
  overrides.push_back("graph.file=" + Json(graph.string()).dump());
  return overrides;
}

fs::path import_checkpoint(const CommandLine& c, const parallel::ProcessMesh& mesh) {
  const ExchangeCommand& exchange = *c.exchange;
  if (!is_utf8(exchange.to)) throw ConfigError("TO", "the name is not UTF-8");
  const anemoi::ModelCheckpoint checkpoint(exchange.from);
  RunConfig config = choose_config(c, checkpoint);
  config.run.dir = exchange.to;
  OtherModel model{.weights = checkpoint.model(), .graph = checkpoint.graph()};
  const auto& training = checkpoint.training();
  if (training && !exchange.weights_only) {
    if (training->optimizer.empty() ||
        config.optimizer.adamw.kind != train::OptimizerKind::kAdamW) {
      log::warning("the training begins again: '", exchange.from,
                   "' has no moments of AdamW that this configuration goes on with");
    } else {
      model.training = &*training;
    }
  }
  return import_model(std::move(config), model, mesh);
}

}  // namespace aifs::app
