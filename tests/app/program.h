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

// Environment and launcher in front of the program. Tests run side by side: mpirun would bind each
// to the same first cores, and its processes would not let others run while they wait.
inline std::string mpirun(int ranks) {
  return concat(
      "OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_mpi_yield_when_idle=1 mpirun --oversubscribe --bind-to none -n ",
      ranks, " ");
}

inline CommandResult run_train(const std::filesystem::path& run_dir, const std::string& more = "",
                               const std::string& config = tiny_config()) {
  return run_command(train_command(run_dir, more, config));
}

}  // namespace aifs::test
