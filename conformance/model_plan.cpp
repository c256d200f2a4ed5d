// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_plan.h"

#include "anemoi/part_sections.h"
#include "conformance/anemoi_form.h"
#include "conformance/anemoi_model.h"
#include "conformance/report.h"
#include "core/config.h"
#include "core/time.h"

namespace aifs::conformance {

model::BoundingOptions bounding_options(const std::string& name, const Json& json) {
  Json one = json;
  one["class"] = name;
  const anemoi::Imported imported =
      anemoi::import_bounding_section(anemoi_boundings(Json::array({one})));
  model::ModelOptions options;
  config::read(options, section_of(imported, "model"), "model", {});
  return options.bounding.at(0);
}

std::vector<CaseDataset> datasets_of(const Json& json) {
  const auto table = [](const Json& variables) {
    data::RoleOptions roles{texts(variables.at("forcing")), texts(variables.at("diagnostic"))};
    return data::VariableTable(texts(variables.at("dataset_variables")), roles);
  };
  const Json& variables = json.at("variables");
  if (variables.contains("dataset_variables")) return {{"data", "", table(variables)}};
  std::vector<CaseDataset> datasets;
  for (const auto& [name, entry] : variables.items())
    datasets.push_back({name, name + "/", table(entry)});
  return datasets;
}

data::Statistics statistics_of(const SafetensorsFile& tensors, const std::string& prefix) {
  const auto read = [&](const char* name) {
    return tensors.contains(prefix + name) ? tensors.doubles(prefix + name) : std::vector<double>();
  };
  return {read("mean"), read("stdev"), read("minimum"), read("maximum")};
}

NetworkConfig NetworkConfig::read(const Json& sections) {
  NetworkConfig config;
  config::read(config.model, sections.value("model", Json::object()), "model", {});
  config::read(config.data, sections.value("data", Json::object()), "data", {});
  return config;
}

NetworkConfig network_config(const Json& json, const SafetensorsFile& tensors,
                             const graph::Graph& graph, const fs::path& folder) {
  std::vector<std::string> names;
  for (const CaseDataset& dataset : datasets_of(json))
    names.push_back(dataset.name);
  const anemoi::Imported imported =
      anemoi::import_model_section(anemoi_sections(json, tensors, graph, folder), names);
  Json sections{{"model", section_of(imported, "model")}, {"data", section_of(imported, "data")}};
  Json& data = sections["data"];
  for (const std::string& name : names)
    data["datasets"][name]["dataset"] = tensors.path().string();
  data["multistep_input"] = json.value("times_in", int64_t{2});
  data["multistep_output"] = json.value("times_out", int64_t{1});
  return NetworkConfig::read(sections);
}

app::DataParts data_parts(const CaseDataset& dataset, const data::Statistics& statistics,
                          const data::DataOptions& options) {
  app::DataParts parts;
  parts.name = dataset.name;
  parts.variables = dataset.variables;
  parts.statistics = statistics;
  const auto count = static_cast<size_t>(dataset.variables.num_variables());
  if (statistics.mean.empty()) parts.statistics.mean.assign(count, 0.0);
  if (statistics.stdev.empty()) parts.statistics.stdev.assign(count, 1.0);
  parts.window = {.times_in = options.multistep_input, .times_out = options.multistep_output};
  parts.timestep_s = parse_duration(options.timestep);
  return parts;
}

std::vector<app::DataParts> data_parts(const Json& json, const SafetensorsFile& tensors,
                                       const data::DataOptions& options) {
  std::vector<app::DataParts> all;
  for (const CaseDataset& dataset : datasets_of(json)) {
    const std::string& prefix = dataset.prefix;
    all.push_back(data_parts(dataset, statistics_of(tensors, prefix + "statistics/"), options));
    const std::string tendencies = prefix + "statistics_tendencies/stdev";
    if (tensors.contains(tendencies))
      all.back().tendencies[all.back().timestep_s].stdev = tensors.doubles(tendencies);
  }
  return all;
}

}  // namespace aifs::conformance
