// SPDX-License-Identifier: Apache-2.0
// What a run is, on one screen, before it starts.
#pragma once

#include <string>

#include "app/wiring.h"

namespace aifs::app {

std::string run_card(const Run& run);

}  // namespace aifs::app
