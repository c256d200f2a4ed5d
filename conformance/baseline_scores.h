// SPDX-License-Identifier: Apache-2.0
// How wrong the simplest forecasts are. All scores: root of the mean squared error over rows
// [first, end), members and cells, cells weighted by the cosine of their latitude; per variable
// (V).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "data/fields/dataset.h"

namespace aifs::conformance {

// Forecast: the fields `lag` rows earlier, for the rows where these are in [first, end) too.
std::vector<double> persistence_rmse(const data::Dataset& dataset, int64_t first, int64_t end,
                                     int64_t lag);

// Forecast: the mean of the training rows, cell by cell, for the rows of validation.
using RowRange = std::pair<int64_t, int64_t>;  // [first, end)
std::vector<double> mean_rmse(const data::Dataset& dataset, RowRange training, RowRange validation);

}  // namespace aifs::conformance
