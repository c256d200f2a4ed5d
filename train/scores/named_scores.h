// SPDX-License-Identifier: Apache-2.0
// The scores of a validation one by one, under the names that options and curves use, from the
// object that validation.jsonl holds (train/scores.h): "loss", "mean_ratio_24h", "rmse_z_500_24h",
// of a region "rmse_nh_z_500_24h", of one of several datasets "era5/rmse_z_500_24h".
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace aifs::train {

struct NamedScore {
  std::string name;
  double value = 0.0;  // NaN where the file says null
};

// In the order of the object. Nothing is expected of it: what is no score is left out.
std::vector<NamedScore> named_scores(const nlohmann::ordered_json& validation);

// NaN if there is none of this name.
double score_called(const std::string& name, const nlohmann::ordered_json& validation);

// A row for each dataset, lead time, region and variable: "step", "epoch", "dataset", "variable",
// "lead_time_h", "region" ("global" for all cells), "dates", then the figures.
std::vector<nlohmann::ordered_json> score_rows(const nlohmann::ordered_json& validation);
// The members of those rows, in their order.
std::vector<std::string> score_columns();

}  // namespace aifs::train
