// SPDX-License-Identifier: Apache-2.0
// Folders that tests need.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/temporary_folder.h"

namespace aifs::test {

using aifs::TemporaryFolder;

// The project's source folder, its built programs, and its small reference data.
std::filesystem::path source_folder();
std::filesystem::path program(const std::string& name);
std::filesystem::path fixture(const std::string& relative);

// The full reference data ($AIFS_SHARED), if this machine has it.
std::optional<std::filesystem::path> shared_folder();

// Runs a shell command; gives its exit code, standard output and standard error.
struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};
CommandResult run_command(const std::string& command);

}  // namespace aifs::test
