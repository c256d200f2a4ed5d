// SPDX-License-Identifier: Apache-2.0
// Plans for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/scaling.h"

namespace aifs::plan {

// Tables of memory, communication, arithmetic and time.
std::string to_text(const StepPlan& plan, const Machine& machine);
std::string to_text(const Scaling& scaling);
nlohmann::ordered_json to_json(const StepPlan& plan);
nlohmann::ordered_json to_json(const Scaling& scaling);

// Efficiency over ranks (logarithmic), one line per scaling, as an SVG file.
std::string to_svg(const std::vector<Scaling>& scalings, const std::string& title);

}  // namespace aifs::plan
