// SPDX-License-Identifier: Apache-2.0
// Validation on dates that were trained on scores too well: whether two periods do that.
#pragma once

#include <string>

#include "data/fields/dataset.h"
#include "train/rollout.h"

namespace aifs::app {

// A warning that names the shared dates and how many validation samples have a truth that training
// samples have, too, counting forecasts of one model step; empty if there is no such sample. A date
// that one period ends with and the other begins with is no fault: nothing is forecast for it in
// the later one.
std::string overlap_warning(const data::DatasetInfo& training, const data::DatasetInfo& validation,
                            const train::Window& window);

}  // namespace aifs::app
