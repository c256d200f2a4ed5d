// SPDX-License-Identifier: Apache-2.0
// Turns what a configuration asks of validations into cells and checks, once datasets are known.
#pragma once

#include <string>
#include <vector>

#include "app/run/run_config.h"
#include "data/fields/dataset.h"
#include "train/validation.h"

namespace aifs::app {

// The cells of each of train.validation.regions, by the names of the regions: those of `aifs-train
// verify`. Those that have no cell of this dataset are left out if `may_lack` is true. Throws
// ConfigError for a text that names none, for a name that is there twice, and for a region without
// a cell.
std::vector<train::NamedCells> validation_regions(const train::ValidationOptions& options,
                                                  const data::DatasetInfo& info, bool may_lack);

// Throws ConfigError if a score by which the run is judged (checkpoint.keep_best,
// train.early_stop) is none that its validations give, with the nearest names.
void check_scores(const RunConfig& config, const train::Validation& validation);

}  // namespace aifs::app
