// SPDX-License-Identifier: Apache-2.0
// Versions of the program and of the libraries it runs with.
#pragma once

#include <string>

namespace aifs::app {

std::string torch_version();

// Lines "name: version" for --version and the run card.
std::string versions_text();

}  // namespace aifs::app
