// SPDX-License-Identifier: Apache-2.0
// What a run is, on one screen, before it starts.
#pragma once

#include <string>

#include "app/wiring.h"

namespace aifs::app {

// `ranks` describes every rank, in order; one alone is not mentioned.
std::string run_card(const Run& run, const std::vector<std::string>& ranks = {});

}  // namespace aifs::app
