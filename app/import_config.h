// SPDX-License-Identifier: Apache-2.0
// A configuration of Anemoi's as one of ours: `aifs-train import-config`.
#pragma once

#include "app/cli.h"

namespace aifs::app {

// Prints the configuration, and what becomes of all keys that are not in it. Returns the exit code.
// Throws ConfigError, in terms of Anemoi's key where one is to blame, rather than print what the
// program would refuse.
int import_config(const ImportConfigCommand& command);

}  // namespace aifs::app
