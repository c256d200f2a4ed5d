// SPDX-License-Identifier: Apache-2.0
// Parts of a configuration alone, where there is no whole one. All throw ConfigError.
#pragma once

#include <string>
#include <vector>

#include "anemoi/training_config.h"

namespace aifs::anemoi {

// The processors of a dataset as normalizer, imputer, remapper and postprocessor of our section
// "data". `variables` are those of the dataset: what "default" is for, besides those that are
// named.
Imported import_processor_section(const Json& processors,
                                  const std::vector<std::string>& variables);

// The network of these datasets as our section "model", and the names of its encoders and decoders
// in "datasets" of our section "data", from Anemoi's sections: "model", and of "training" what
// concerns members of ensembles.
Imported import_model_section(const Json& sections, const std::vector<std::string>& datasets);

// A list of limits as "bounding" of our section "model".
Imported import_bounding_section(const Json& list);

}  // namespace aifs::anemoi
