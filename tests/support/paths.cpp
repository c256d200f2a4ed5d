// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "core/check.h"
#include "core/file_io.h"

namespace aifs::test {

namespace {

std::filesystem::path folder_from(const char* variable) {
  const char* value = std::getenv(variable);
  AIFS_CHECK(value, variable, " is not set: run the tests through ctest");
  return value;
}

}  // namespace

std::filesystem::path source_folder() {
  return folder_from("AIFS_SOURCE_DIR");
}
std::filesystem::path program(const std::string& name) {
  return folder_from("AIFS_BIN_DIR") / name;
}
std::filesystem::path fixture(const std::string& relative) {
  return source_folder() / "tests" / "fixtures" / relative;
}

std::optional<std::filesystem::path> shared_folder() {
  const char* value = std::getenv("AIFS_SHARED");
  if (!value || !*value) return std::nullopt;
  return value;
}

CommandResult run_command(const std::string& command) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string(), err = (folder.path() / "err").string();
  const int status = std::system(concat("( ", command, " ) >", out, " 2>", err).c_str());
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

}  // namespace aifs::test
