// SPDX-License-Identifier: Apache-2.0
// Configurations within pickles.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/pickle.h"

namespace aifs::anemoi {

// Plain values as JSON: dictionaries, lists, texts and numbers, and what OmegaConf makes of them;
// null for anything else. Throws DataError naming `file` beyond all reason.
nlohmann::ordered_json plain_json(const PickleValue& value, const std::string& file);

}  // namespace aifs::anemoi
