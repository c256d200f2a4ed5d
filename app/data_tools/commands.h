// SPDX-License-Identifier: Apache-2.0
// `aifs-train data ...`: runs a command, prints what it has to say.
#pragma once

#include "app/data_tools/options.h"

namespace aifs::app {

// The exit code of the program. Throws ConfigError, DataError, Error.
int run_data_command(const DataCommand& command);

}  // namespace aifs::app
