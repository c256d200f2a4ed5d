// SPDX-License-Identifier: Apache-2.0
// Runs aifs-train on the tiny configuration, with overrides.
#pragma once

#include <string>

#include "core/check.h"
#include "tests/support/paths.h"

namespace aifs::test {

inline std::string tiny_config() {
  return (source_folder() / "tests/app/tiny.json").string();
}

// The command line, unquoted arguments after the configuration.
inline std::string train_command(const std::filesystem::path& run_dir, const std::string& more = "",
                                 const std::string& config = tiny_config()) {
  return concat("'", program("aifs-train").string(), "' --config '", config, "' --set run.dir='",
                run_dir.string(), "' ", more);
}

inline CommandResult run_train(const std::filesystem::path& run_dir, const std::string& more = "",
                               const std::string& config = tiny_config()) {
  return run_command(train_command(run_dir, more, config));
}

}  // namespace aifs::test
