// SPDX-License-Identifier: Apache-2.0
#include "app/data_parts.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/time.h"
#include "data/analytic_dataset.h"
#include "data/anemoi_dataset.h"
#include "data/zarr/caching_store.h"
#include "graph/gaussian_grid.h"
#include "parallel/process_mesh.h"

namespace aifs::app {

namespace {

using StorePtr = std::shared_ptr<const zarr::Store>;

// `name`: that of the period among the keys of "data".
std::shared_ptr<const data::Dataset> open_anemoi(const RunConfig& config, const StorePtr& store,
                                                 const data::Period& period, const char* name) {
  data::DatasetOptions options = config.data.dataset;
  const auto set = [&](const char* key, const std::string& wanted, std::string& text,
                       std::string& path) {
    if (wanted.empty()) return;
    text = wanted;
    path = concat("data.", name, ".", key);
  };
  set("start", period.start, options.start, options.start_path);
  set("end", period.end, options.end, options.end_path);
  return std::make_shared<data::AnemoiDataset>(store, options);
}

std::shared_ptr<const data::Dataset> make_analytic(const RunConfig& config,
                                                   const data::Period& period) {
  const graph::Coordinates grid =
      graph::gaussian_coordinates(graph::parse_gaussian_grid(config.graph.grid));
  data::AnalyticOptions options = config.data.analytic;
  if (!period.start.empty()) options.start = period.start;
  if (!period.end.empty()) options.end = period.end;
  options.statistics_end = "";  // statistics are those of the period itself
  return std::make_shared<data::AnalyticDataset>(options, grid.lat_deg, grid.lon_deg);
}

std::shared_ptr<const data::Dataset> open_dataset(const RunConfig& config, const StorePtr& store,
                                                  const data::Period& period, const char* name) {
  return store ? open_anemoi(config, store, period, name) : make_analytic(config, period);
}

// Rows of the dataset per time step of the model.
int64_t rows_per_timestep(const data::DatasetInfo& info, int64_t timestep_s) {
  if (timestep_s % info.frequency_s != 0) {
    throw ConfigError("data.timestep", concat(format_duration(timestep_s),
                                              " is not a multiple of the frequency of '", info.name,
                                              "', ", format_duration(info.frequency_s)));
  }
  return timestep_s / info.frequency_s;
}

void check_alike(const data::DatasetInfo& training, const data::DatasetInfo& validation) {
  if (training.variables != validation.variables ||
      training.num_nodes() != validation.num_nodes() ||
      training.ensemble_size != validation.ensemble_size) {
    throw DataError(concat("'", training.name, "' and '", validation.name,
                           "' differ in variables, cells or members"));
  }
}

// The analytic dataset of a period has no dates if the period is not in order.
void check_period(const data::Period& period, const std::string& path) {
  if (!data::is_date(period.start) || !data::is_date(period.end)) return;
  if (parse_date(period.start) <= parse_date(period.end, DateEnd::kEnd)) return;
  throw ConfigError(path + ".end", concat(period.end, " is before the start, ", period.start));
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts)
    all += (all.empty() ? " " : "; ") + text;
  return all;
}

// The differences mean that the weights do not belong to these data.
[[noreturn]] void refuse(const SavedData& saved, const std::vector<std::string>& differences,
                         const std::string& hint) {
  const std::string what = concat("the weights of checkpoint '", saved.checkpoint,
                                  "' belong to other data:", joined(differences));
  if (saved.use == WeightUse::kStart) throw ConfigError("init.from", what, hint);
  throw DataError(what, hint);
}

void check_variables(const SavedData& saved, const data::DatasetInfo& info,
                     const data::VariableTable& table, DataParts& parts) {
  const std::vector<std::string> differences =
      data::variable_differences(*saved.record, info.variables, table);
  if (differences.empty()) return;
  const auto count = [](const data::DataRecord& record, data::Role left_out) {
    return std::count_if(record.variables.begin(), record.variables.end(),
                         [&](const data::VariableRecord& v) { return v.role != left_out; });
  };
  // Where neither inputs nor outputs are as many as before, no tensor of the network that has
  // columns of variables fits by chance: init.may_skip decides on them.
  const bool other_shapes = count(*saved.record, data::Role::kDiagnostic) != table.num_inputs() &&
                            count(*saved.record, data::Role::kForcing) != table.num_outputs();
  if (saved.use == WeightUse::kStart && other_shapes) {
    parts.warnings.push_back(concat("the weights of checkpoint '", saved.checkpoint,
                                    "' were trained on other variables:", joined(differences)));
    return;
  }
  refuse(saved, differences,
         "restore names and order (data.dataset.select) and roles (data.forcing, data.diagnostic) "
         "of that run");
}

bool takes_saved_tables(const RunConfig& config, const SavedData& saved) {
  if (config.data.tables == data::TableSource::kCheckpoint) return true;
  return config.data.tables == data::TableSource::kAuto && saved.use == WeightUse::kScore;
}

// After all tables are made.
void check_tables(const RunConfig& config, const SavedData& saved, const data::DatasetInfo& info,
                  DataParts& parts) {
  const bool takes_saved = takes_saved_tables(config, saved);
  const std::vector<std::string> tables = data::table_differences(*saved.record, parts.record);
  const auto warn = [&](const std::string& what, const std::vector<std::string>& differences) {
    if (!differences.empty())
      parts.warnings.push_back(
          concat(what, " checkpoint '", saved.checkpoint, "':", joined(differences)));
  };
  const bool asked_for = config.data.tables == data::TableSource::kDataset;
  if (tables.empty() || asked_for || saved.use == WeightUse::kStart) {
    warn("values are not normalised, filled or mapped as in", tables);
  } else {
    refuse(saved, tables,
           takes_saved
               ? "restore data.normalizer, data.imputer, data.remapper and data.timestep of "
                 "that run"
               : "restore the dataset or the options of section data; or keep the tables of "
                 "the checkpoint with data.tables \"checkpoint\"");
  }
  if (takes_saved) {
    data::DataRecord own = parts.record;
    const data::Statistics& s = info.statistics;
    for (size_t v = 0; v < own.variables.size(); ++v) {
      data::VariableRecord& variable = own.variables[v];
      variable.mean = s.mean[v], variable.stdev = s.stdev[v];
      variable.minimum = s.minimum[v], variable.maximum = s.maximum[v];
    }
    const std::vector<std::string> others = data::statistics_differences(*saved.record, own);
    if (!others.empty())
      parts.warnings.push_back(concat("the statistics are those of checkpoint '", saved.checkpoint,
                                      "', not of '", info.name, "':", joined(others)));
  } else {
    warn("statistics differ from", data::statistics_differences(*saved.record, parts.record));
  }
  if (saved.use == WeightUse::kResume)
    warn("dates differ from those of", data::period_differences(*saved.record, parts.record));
}

}  // namespace

SavedData saved_data(WeightUse use, const train::CheckpointInfo& checkpoint) {
  SavedData saved{use, checkpoint.path.string(), std::nullopt};
  if (checkpoint.meta.data_json.empty()) return saved;
  const fs::path manifest = checkpoint.path / "manifest.json";
  saved.record = data::data_record_from_json(config::Json::parse(checkpoint.meta.data_json),
                                             manifest.string());
  return saved;
}

std::string to_text(const std::optional<SavedData>& saved) {
  if (!saved) return "";
  config::Json json{{"use", static_cast<int>(saved->use)}, {"checkpoint", saved->checkpoint}};
  if (saved->record) json["record"] = data::to_json(*saved->record);
  return json.dump();
}

std::optional<SavedData> saved_data_from_text(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const config::Json json = config::Json::parse(text);
  SavedData saved{static_cast<WeightUse>(json.at("use").get<int>()),
                  json.at("checkpoint").get<std::string>(), std::nullopt};
  if (json.contains("record"))
    saved.record = data::data_record_from_json(json.at("record"), saved.checkpoint);
  return saved;
}

StorePtr open_store(const RunConfig& config) {
  if (config.data.kind == data::SourceKind::kAnalytic) return nullptr;
  const std::string& folder = config.data.dataset.dataset;
  const data::CacheOptions& cache = config.data.cache;
  const std::shared_ptr<const zarr::Store> store = data::open_store(folder);
  if (cache.dir.empty()) return store;
  return std::make_shared<zarr::CachingStore>(folder, cache.dir,
                                              static_cast<int64_t>(cache.limit_gib * (1 << 30)));
}

DataParts make_data(const RunConfig& config, const StorePtr& store, const SavedData* saved) {
  DataParts parts;
  parts.store = store;
  check_period(config.data.training, "data.training");
  check_period(config.data.validation, "data.validation");
  parts.training = open_dataset(config, store, config.data.training, "training");
  parts.validation = open_dataset(config, store, config.data.validation, "validation");
  const data::DatasetInfo& info = parts.training->info();
  check_alike(info, parts.validation->info());
  if (info.ensemble_size != 1) {
    throw ConfigError("data.dataset", concat("'", info.name, "' has ", info.ensemble_size,
                                             " members, this network takes one"));
  }
  parts.variables = data::VariableTable(info.variables, config.data.roles);
  if (saved && !saved->record) {
    parts.warnings.push_back(concat("checkpoint '", saved->checkpoint,
                                    "' was written by an older program and does not say which "
                                    "variables and statistics its weights belong to: not checked"));
    saved = nullptr;
  }
  if (saved) check_variables(*saved, info, parts.variables, parts);
  const bool same_variables =
      saved && data::variable_differences(*saved->record, info.variables, parts.variables).empty();
  parts.statistics = info.statistics;
  parts.tendencies = info.tendencies;
  if (same_variables && takes_saved_tables(config, *saved)) {
    const data::DataRecord& record = *saved->record;
    parts.statistics = record.statistics();
    parts.tendencies = record.tendencies;
  }
  const data::Statistics statistics = parts.statistics;  // a remap changes the others
  parts.timestep_s = parse_duration(config.data.timestep);
  const data::Imputer imputer(info.variables, parts.statistics, config.data.imputer);
  const data::Normaliser normaliser =
      data::Normaliser::create(info.variables, parts.statistics, config.data.normalizer);
  const data::Remapper remapper(info.variables, config.data.remapper);
  parts.training_source = {parts.training, normaliser, imputer, remapper};
  parts.validation_source = {parts.validation, normaliser, imputer, remapper};
  parts.record = {.variables = data::variable_records(parts.variables, statistics,
                                                      {normaliser, imputer, remapper}),
                  .tendencies = parts.tendencies,
                  .timestep_s = parts.timestep_s,
                  .dataset = info.name,
                  .num_nodes = info.num_nodes(),
                  .training = data::period_of(info),
                  .validation = data::period_of(parts.validation->info())};
  parts.window = {config.data.multistep_input, config.data.multistep_output,
                  rows_per_timestep(info, parts.timestep_s)};
  if (same_variables) check_tables(config, *saved, info, parts);
  return parts;
}

std::vector<std::string> warnings_of(const DataParts& data) {
  std::vector<std::string> all = data.warnings;
  for (const auto& dataset : {data.training, data.validation}) {
    for (const std::string& warning : dataset->warnings()) {
      const std::string text = concat("data: ", warning);
      if (std::count(all.begin(), all.end(), text) == 0) all.push_back(text);
    }
  }
  return all;
}

std::string files_read(const DataParts& data, parallel::Communicator& world) {
  if (!data.store) return "";
  const double bytes =
      parallel::sum_over(world, {static_cast<double>(data.store->bytes_read())})[0];
  char text[64];
  std::snprintf(text, sizeof text, "%.3f GiB of files were read", bytes / (1 << 30));
  return text;
}

}  // namespace aifs::app
