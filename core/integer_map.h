// SPDX-License-Identifier: Apache-2.0
// A key of a configuration that is a map of names to integers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/config.h"

namespace aifs::config {

// Binds it. Reading throws ConfigError for what is no integer within the bounds.
void integer_map(Binder& b, const char* key, std::map<std::string, int64_t>& value,
                 Bounds<int64_t> bounds, Doc doc);

}  // namespace aifs::config
