// SPDX-License-Identifier: Apache-2.0
#include "app/run/validation_parts.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "verify/regions.h"

namespace aifs::app {

std::vector<train::NamedCells> validation_regions(const train::ValidationOptions& options,
                                                  const data::DatasetInfo& info, bool may_lack) {
  std::vector<train::NamedCells> found;
  for (size_t i = 0; i < options.regions.size(); ++i) {
    const std::string path = concat("train.validation.regions.", i);
    const verify::Region region = verify::parse_region(options.regions[i], path);
    if (region.name == "global" || region.name == "inside_lam" || region.name == "outside_lam")
      throw ConfigError(path, concat("scores of '", region.name, "' have their place already"),
                        "leave it out, or give the region another name");
    const bool is_twice =
        std::any_of(found.begin(), found.end(),
                    [&](const train::NamedCells& other) { return other.name == region.name; });
    if (is_twice) throw ConfigError(path, concat("there are two regions '", region.name, "'"));
    at::Tensor cells = at::zeros({info.num_nodes()}, at::kBool);
    bool* inside = cells.mutable_data_ptr<bool>();
    for (size_t n = 0; n < static_cast<size_t>(info.num_nodes()); ++n)
      inside[n] = region.contains(info.latitudes_deg[n], info.longitudes_deg[n]);
    if (at::any(cells).item<bool>()) {
      found.push_back({region.name, cells});
    } else if (!may_lack) {
      throw ConfigError(path, concat("no cell of '", info.name, "' is in '", region.name, "'"));
    }
  }
  return found;
}

void check_scores(const RunConfig& config, const train::Validation& validation) {
  const train::KeepBestOptions& best = config.checkpoint.keep_best;
  const train::EarlyStopOptions& early = config.train.early_stop;
  if (!best.is_on() && !early.is_on()) return;
  const std::vector<std::string> names = validation.score_names();
  if (best.is_on()) best.by.check("checkpoint.keep_best", names);
  if (early.is_on()) early.by.check("train.early_stop", names);
}

}  // namespace aifs::app
