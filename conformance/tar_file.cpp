// SPDX-License-Identifier: Apache-2.0
#include "conformance/tar_file.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/check.h"

namespace aifs::conformance {

namespace {

// Runs `tar` without a shell and without its output. Returns whether it succeeded.
bool run_tar(std::vector<std::string> words) {
  words.insert(words.begin(), "tar");
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t silent;
  ::posix_spawn_file_actions_init(&silent);
  ::posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&silent, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, "tar", &silent, nullptr, arguments.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&silent);
  if (failed) throw Error("cannot start 'tar', which unpacks reference data: install it");
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw Error("lost the process of 'tar'");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

void unpack_tar(const fs::path& archive, const fs::path& folder) {
  make_directories(folder);
  // It refuses names that would leave the folder.
  if (!run_tar({"--no-same-owner", "-xf", archive.string(), "-C", folder.string()}))
    throw DataError(concat("'", archive.string(), "': tar cannot unpack this archive"));
}

bool tar_holds(const fs::path& archive, const std::string& folder) {
  return run_tar({"-tf", archive.string(), folder});
}

}  // namespace aifs::conformance
