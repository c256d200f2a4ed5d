// SPDX-License-Identifier: Apache-2.0
#include "app/run/make_data.h"

#include <algorithm>
#include <set>

#include "app/run/analytic_cells.h"
#include "app/run/data_match.h"
#include "core/check.h"
#include "core/time.h"
#include "data/combine/open_dataset.h"
#include "data/sources/analytic_dataset.h"

namespace aifs::app {

namespace {

using StoresPtr = std::shared_ptr<DataStores>;

// `name`: that of the period among the keys of "data".
std::shared_ptr<const data::Dataset> open_anemoi(const RunConfig& config, const StoresPtr& stores,
                                                 const data::Period& period, const char* name) {
  data::DatasetTree options = config.data.dataset;
  // Options beside a complement are those of what is added, not of the whole.
  if (options.source_key() == "complement") options = data::put_inside_another(options);
  const auto set = [&](const char* key, const std::string& wanted, std::string& text,
                       std::string& path) {
    if (wanted.empty()) return;
    text = wanted;
    path = concat("data.", name, ".", key);
  };
  set("start", period.start, options.start, options.start_path);
  set("end", period.end, options.end, options.end_path);
  return data::open_dataset(options, [&](const std::string& store) { return stores->open(store); });
}

std::shared_ptr<const data::Dataset> make_analytic(const RunConfig& config,
                                                   const data::Period& period) {
  AnalyticCells cells = analytic_cells(config);
  data::AnalyticOptions options = config.data.analytic;
  if (!period.start.empty()) options.start = period.start;
  if (!period.end.empty()) options.end = period.end;
  options.statistics_end = "";  // statistics are those of the period itself
  return std::make_shared<data::AnalyticDataset>(options, std::move(cells.places.lat_deg),
                                                 std::move(cells.places.lon_deg),
                                                 std::move(cells.grids));
}

std::shared_ptr<const data::Dataset> open_dataset(const RunConfig& config, const StoresPtr& stores,
                                                  const data::Period& period, const char* name) {
  return stores ? open_anemoi(config, stores, period, name) : make_analytic(config, period);
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

}  // namespace

DataParts make_data(const RunConfig& config, const StoresPtr& stores, const SavedData* saved) {
  DataParts parts;
  parts.stores = stores;
  check_period(config.data.training, "data.training");
  check_period(config.data.validation, "data.validation");
  parts.training = open_dataset(config, stores, config.data.training, "training");
  parts.validation = open_dataset(config, stores, config.data.validation, "validation");
  parts.open_all_dates = [config, stores] { return open_dataset(config, stores, {}, "training"); };
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
  if (saved) check_variables(config, *saved, parts);
  parts.statistics = info.statistics;
  parts.tendencies = info.tendencies;
  if (saved && takes_saved_tables(config, *saved))
    take_saved_statistics(*saved->record, info, parts);
  const data::Statistics statistics = parts.statistics;  // a remap changes the others
  parts.timestep_s = parse_duration(config.data.timestep);
  parts.post_processor = {parts.variables.output_names(), config.data.postprocessor};
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
  if (saved) check_tables(config, *saved, info, parts);
  return parts;
}

namespace {

// Throws an error of one dataset again under the key that is at fault: where "data.forcing" is
// named, data.datasets.<name>.forcing if that is given, else the key that all datasets share.
[[noreturn]] void fail_in_dataset(const ConfigError& error, const std::string& name,
                                  const std::set<std::string>& given) {
  const std::string prefix = "data.";
  const std::string key =
      error.path().starts_with(prefix) ? error.path().substr(prefix.size()) : "";
  const std::string text = error.what(), before = concat("'", error.path(), "': ");
  const std::string what = text.starts_with(before) ? text.substr(before.size()) : text;
  const bool is_own = given.contains(key.substr(0, key.find('.'))) && !key.starts_with("dataset");
  if (is_own) throw ConfigError(concat("data.datasets.", name, ".", key), what, error.hint());
  if (error.path().starts_with(concat("data.datasets.", name))) throw error;
  throw ConfigError(error.path(), concat("of dataset '", name, "': ", what),
                    concat(error.hint(), error.hint().empty() ? "" : "; ", "data.datasets.", name,
                           " may have one of its own"));
}

// Takes what the checkpoint says of one of several datasets; nothing where that starts afresh.
std::optional<SavedData> saved_of(const SavedData* saved, const std::string& name,
                                  std::vector<std::string>& warnings) {
  if (!saved) return std::nullopt;
  SavedData own = *saved;
  const auto found = saved->datasets.find(name);
  if (found != saved->datasets.end()) {
    own.record = found->second;
    return own;
  }
  if (saved->datasets.empty() && !saved->record) return own;  // of an older program
  const std::string what =
      concat("checkpoint '", saved->checkpoint, "' has no dataset '", name, "'");
  if (saved->use != WeightUse::kStart)
    throw DataError(what, "name the datasets of that run; or start a new one with init.from");
  warnings.push_back(what + ": weights that only it has start afresh");
  return std::nullopt;
}

void check_saved_names(const SavedData* saved, const std::vector<std::string>& names) {
  if (!saved || saved->use == WeightUse::kStart) return;
  for (const auto& [name, record] : saved->datasets) {
    if (std::count(names.begin(), names.end(), name) > 0) continue;
    throw DataError(concat("checkpoint '", saved->checkpoint, "' was trained on a dataset '", name,
                           "', too, which data.datasets does not name"),
                    "name the datasets of that run; or start a new one with init.from");
  }
}

// Throws DataError unless the rows of both are the same dates: batches are of the same rows.
void check_same_dates(const data::DatasetInfo& first, const data::DatasetInfo& other,
                      const char* period) {
  if (first.dates_s == other.dates_s) return;
  const auto dates = [](const data::DatasetInfo& info) {
    return concat(info.num_rows(), " dates from ", format_date(info.dates_s.front()), " to ",
                  format_date(info.dates_s.back()), " every ", format_duration(info.frequency_s));
  };
  throw DataError(concat("datasets of one run have the same dates, and '", first.name, "' has ",
                         dates(first), ", '", other.name, "' ", dates(other)),
                  concat("give both ends of data.", period,
                         ", and the frequency of each dataset where they differ"));
}

}  // namespace

std::vector<DataParts> make_datasets(const RunConfig& config, const StoresPtr& stores,
                                     const SavedData* saved) {
  const std::vector<std::string> names = config.data.names();
  check_saved_names(saved, names);
  if (config.data.datasets.empty()) {
    if (!saved || saved->datasets.empty()) return {make_data(config, stores, saved)};
    std::vector<DataParts> one{make_data(config, stores)};
    one[0].warnings.push_back(concat("checkpoint '", saved->checkpoint,
                                     "' was trained on several datasets: whether one of them is "
                                     "this one is not checked"));
    return one;
  }
  std::vector<DataParts> all;
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string> warnings;
    const std::optional<SavedData> own = saved_of(saved, names[i], warnings);
    RunConfig one = config;
    one.data = config.data.of_dataset(i);
    try {
      all.push_back(make_data(one, stores, own ? &*own : nullptr));
    } catch (const ConfigError& error) {
      fail_in_dataset(error, names[i], config.data.datasets[i].second.given);
    } catch (const DataError& error) {
      throw DataError(concat("dataset '", names[i], "': ", error.what()), error.hint());
    }
    DataParts& parts = all.back();
    parts.name = names[i];
    parts.warnings.insert(parts.warnings.begin(), warnings.begin(), warnings.end());
    check_same_dates(all[0].training->info(), parts.training->info(), "training");
    check_same_dates(all[0].validation->info(), parts.validation->info(), "validation");
  }
  return all;
}

void require_one_dataset(const RunConfig& config, const std::string& what,
                         const std::string& hint) {
  if (!config.data.datasets.empty()) throw ConfigError("data.datasets", what, hint);
}

}  // namespace aifs::app
