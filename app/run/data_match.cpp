// SPDX-License-Identifier: Apache-2.0
#include "app/run/data_match.h"

#include <algorithm>

#include "core/check.h"
#include "core/join.h"

namespace aifs::app {

namespace {

// The differences mean that the weights do not belong to these data.
[[noreturn]] void refuse(const SavedData& saved, const std::vector<std::string>& differences,
                         const std::string& hint) {
  const std::string what = concat("the weights of checkpoint '", saved.checkpoint,
                                  "' belong to other data: ", join(differences, "; "));
  if (saved.use == WeightUse::kStart) throw ConfigError("init.from", what, hint);
  throw DataError(what, hint);
}

// One list of columns of a network, with the number of times that each stands for.
struct Columns {
  const char* what;
  const std::vector<std::string>&before, &now;
  int64_t times_before, times_now;
};

// Adds what would be taken for something else to `faults`, else what does not fit to `remarks`.
void compare(const Columns& c, std::vector<std::string>& faults,
             std::vector<std::string>& remarks) {
  const data::ColumnChange change = data::compare_columns(c.before, c.now);
  if (change.is_same() && c.times_before == c.times_now) return;
  std::vector<std::string> texts;
  if (const std::string text = change.text(); !text.empty()) texts.push_back(text);
  if (c.times_before != c.times_now)
    texts.push_back(concat(c.times_before, " times and now ", c.times_now));
  const std::string text = concat("of the ", c.what, "s, ", join(texts, "; "));
  const bool same_width = static_cast<int64_t>(c.before.size()) * c.times_before ==
                          static_cast<int64_t>(c.now.size()) * c.times_now;
  (same_width ? faults : remarks).push_back(text);
}

// Limits that are made of statistics, and those of the checkpoint are loaded with the weights.
std::vector<std::string> limit_differences(const RunConfig& config, const data::DataRecord& before,
                                           const data::DataRecord& now) {
  std::vector<std::string> found;
  for (size_t v = 0; v < before.variables.size(); ++v) {
    const data::VariableRecord &a = before.variables[v], &b = now.variables[v];
    const bool same = a.mean == b.mean && a.stdev == b.stdev;
    for (size_t i = 0; i < config.model.bounding.size() && !same; ++i) {
      const model::BoundingOptions& bounding = config.model.bounding[i];
      const auto& names = bounding.variables;
      if (bounding.thresholds.empty() || std::count(names.begin(), names.end(), a.name) == 0)
        continue;
      found.push_back(concat("the limit of '", a.name, "' (model.bounding.", i,
                             ") was made of mean ", a.mean, " and stdev ", a.stdev, ", now ",
                             b.mean, " and ", b.stdev));
    }
  }
  return found;
}

}  // namespace

bool takes_saved_tables(const RunConfig& config, const SavedData& saved) {
  if (config.data.tables == data::TableSource::kCheckpoint) return true;
  return config.data.tables == data::TableSource::kAuto &&
         (saved.use == WeightUse::kScore || saved.use == WeightUse::kForecast);
}

void take_saved_statistics(const data::DataRecord& saved, const data::DatasetInfo& info,
                           DataParts& parts) {
  bool all_known = true;
  for (size_t v = 0; v < info.variables.size(); ++v) {
    const auto known = std::find_if(
        saved.variables.begin(), saved.variables.end(),
        [&](const data::VariableRecord& variable) { return variable.name == info.variables[v]; });
    if (known == saved.variables.end()) {
      all_known = false;
      continue;
    }
    data::Statistics& s = parts.statistics;
    s.mean[v] = known->mean, s.stdev[v] = known->stdev;
    s.minimum[v] = known->minimum, s.maximum[v] = known->maximum;
    const auto place = static_cast<size_t>(known - saved.variables.begin());
    for (const auto& [delta_s, from] : saved.tendencies) {
      const auto own = parts.tendencies.find(delta_s);
      if (own == parts.tendencies.end()) continue;
      data::Statistics& to = own->second;
      to.mean[v] = from.mean[place], to.stdev[v] = from.stdev[place];
      to.minimum[v] = from.minimum[place], to.maximum[v] = from.maximum[place];
    }
  }
  // The dataset may lack tendencies that the checkpoint has.
  const bool same_order =
      all_known && saved.variables.size() == info.variables.size() &&
      std::equal(
          info.variables.begin(), info.variables.end(), saved.variables.begin(),
          [](const std::string& name, const data::VariableRecord& v) { return name == v.name; });
  if (same_order) parts.tendencies = saved.tendencies;
}

void check_variables(const RunConfig& config, const SavedData& saved, DataParts& parts) {
  if (saved.use != WeightUse::kStart) {
    const std::vector<std::string> differences =
        data::variable_differences(*saved.record, parts.variables.names(), parts.variables);
    if (differences.empty()) return;
    refuse(saved, differences,
           "restore names and order (data.dataset.select) and roles (data.forcing, "
           "data.diagnostic) of that run");
  }
  const data::ColumnNames before = data::column_names(*saved.record),
                          now = data::column_names(parts.variables);
  std::vector<std::string> faults, remarks;
  compare({"input", before.inputs, now.inputs, saved.times_in, config.data.multistep_input}, faults,
          remarks);
  compare({"output", before.outputs, now.outputs, saved.times_out, config.data.multistep_output},
          faults, remarks);
  const bool by_name = config.init.variables_by_name;
  if (by_name) remarks.insert(remarks.end(), faults.begin(), faults.end());
  if (!faults.empty() && !by_name) {
    refuse(saved, faults,
           "tensors would fit all the same, and mean something else: restore names and order "
           "(data.dataset.select) and roles (data.forcing, data.diagnostic) of that run, or take "
           "columns by name with init.variables_by_name");
  }
  if (!remarks.empty()) {
    parts.warnings.push_back(concat(
        "the weights of checkpoint '", saved.checkpoint,
        "' were trained on other variables: ", join(remarks, "; "),
        by_name ? "; they are taken by name"
                : "; tensors that do not fit are a matter of init.may_skip, or taken by name with "
                  "init.variables_by_name"));
  }
}

std::optional<train::VariableMatch> variable_match(const RunConfig& config, const SavedData& saved,
                                                   const data::VariableTable& variables) {
  if (!config.init.variables_by_name) return std::nullopt;
  if (!saved.record) {
    throw ConfigError("init.variables_by_name",
                      concat("checkpoint '", saved.checkpoint,
                             "' was written by an older program and does not say what its "
                             "variables are"),
                      "start from weights of the same variables");
  }
  const data::ColumnNames before = data::column_names(*saved.record),
                          now = data::column_names(variables);
  return train::VariableMatch{
      .inputs = {before.inputs, now.inputs, saved.times_in, config.data.multistep_input},
      .outputs = {before.outputs, now.outputs, saved.times_out, config.data.multistep_output,
                  /*last_is_same=*/false}};
}

void check_tables(const RunConfig& config, const SavedData& saved, const data::DatasetInfo& info,
                  DataParts& parts) {
  const bool takes_saved = takes_saved_tables(config, saved);
  const auto [before, now] = data::shared_variables(*saved.record, parts.record);
  std::vector<std::string> tables = data::table_differences(before, now);
  for (std::string& text : limit_differences(config, before, now))
    tables.push_back(std::move(text));
  const auto warn = [&](const std::string& what, const std::vector<std::string>& differences) {
    if (!differences.empty())
      parts.warnings.push_back(
          concat(what, " checkpoint '", saved.checkpoint, "': ", join(differences, "; ")));
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
    data::DataRecord dataset = parts.record;
    const data::Statistics& s = info.statistics;
    for (size_t v = 0; v < dataset.variables.size(); ++v) {
      data::VariableRecord& variable = dataset.variables[v];
      variable.mean = s.mean[v], variable.stdev = s.stdev[v];
      variable.minimum = s.minimum[v], variable.maximum = s.maximum[v];
    }
    dataset.tendencies = info.tendencies;
    const auto shared = data::shared_variables(*saved.record, dataset);
    const std::vector<std::string> others =
        data::statistics_differences(shared.first, shared.second);
    if (!others.empty() && saved.use != WeightUse::kForecast)  // states may be of any period
      parts.warnings.push_back(concat("the statistics are those of checkpoint '", saved.checkpoint,
                                      "', not of '", info.name, "': ", join(others, "; ")));
  } else {
    warn("statistics differ from", data::statistics_differences(before, now));
  }
  if (saved.use == WeightUse::kResume)
    warn("dates differ from those of", data::period_differences(*saved.record, parts.record));
}

}  // namespace aifs::app
