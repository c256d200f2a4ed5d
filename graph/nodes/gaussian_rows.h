// SPDX-License-Identifier: Apache-2.0
// Points per row of the classic reduced Gaussian grids of ECMWF, as tabulated in Atlas
// (src/atlas/grid/detail/pl/classic_gaussian). They follow no formula.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aifs::graph {

// Northern rows of N<number>, from the pole to the equator; empty if there is no table.
std::span<const int16_t> classic_gaussian_rows(int64_t number);

// The numbers that have a table, ascending.
std::vector<int64_t> classic_gaussian_numbers();

}  // namespace aifs::graph
