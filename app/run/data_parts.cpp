// SPDX-License-Identifier: Apache-2.0
#include "app/run/data_parts.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/run/saved_data.h"
#include "core/check.h"

namespace aifs::app {

std::string record_of(const RunConfig& config, const std::vector<DataParts>& datasets) {
  if (config.data.datasets.empty()) return data::to_json(datasets[0].record).dump();
  config::Json json;
  for (const DataParts& parts : datasets)
    json[kDatasetsKey][parts.name] = data::to_json(parts.record);
  return json.dump();
}

std::vector<std::string> warnings_of(const std::vector<DataParts>& datasets) {
  std::vector<std::string> all;
  const auto add = [&](const std::string& text) {
    if (std::count(all.begin(), all.end(), text) == 0) all.push_back(text);
  };
  for (const DataParts& data : datasets) {
    for (const std::string& warning : data.warnings)
      add(warning);
    for (const auto& dataset : {data.training, data.validation}) {
      for (const std::string& warning : dataset->warnings())
        add(concat("data: ", warning));
    }
  }
  return all;
}

data::SamplerOptions sampling_of(const RunConfig& config, const parallel::ProcessMesh& mesh) {
  return {.seed = static_cast<uint64_t>(config.run.seed),
          .shuffle = true,
          .batch_size = config.data.batch_size,
          .num_groups = mesh.sizes().data,
          .group = mesh.replica(),
          .workers = config.data.anemoi_workers,
          .reseed_every_epoch = config.train.rollout.epoch_increment > 0};
}

std::string files_read(const DataParts& data, parallel::Communicator& world) {
  if (!data.stores || data.stores->empty()) return "";
  const double bytes =
      parallel::sum_over(world, {static_cast<double>(data.stores->bytes_read())})[0];
  char text[64];
  std::snprintf(text, sizeof text, "%.3f GiB of files were read", bytes / (1 << 30));
  return text;
}

}  // namespace aifs::app
