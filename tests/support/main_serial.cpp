// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER
#include <cstdio>
#include <cstdlib>

#include "tests/support/catch.h"

namespace {

int run(int argc, char** argv) {
  Catch::Session session;
#ifdef CATCH_VERSION_MAJOR
#if CATCH_VERSION_MAJOR < 3  // later ones do by themselves: that no case is named so is an error
  session.configData().warnings = Catch::WarnAbout::NoTests;
#endif
#endif
  return session.run(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  const int exit_code = run(argc, argv);
  std::fflush(nullptr);
  // Ranks leave MPI when static objects end; LibTorch takes a tenth of a second to take itself
  // apart, which others save.
  const bool is_rank = std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("PMI_RANK");
  if (!is_rank) std::_Exit(exit_code);
  return exit_code;
}
