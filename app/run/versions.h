// SPDX-License-Identifier: Apache-2.0
// Versions of the program and of the libraries it runs with.
#pragma once

#include <string>

namespace aifs::app {

std::string torch_version();

// Returns what the program was built from, abbreviated; "-dirty" if there were changes when CMake
// last ran.
std::string commit();
// "0.1.0 (1b5d23d9e597)".
std::string program_version();

// Lines "name: version" for --version and the run card.
std::string versions_text();

}  // namespace aifs::app
