// SPDX-License-Identifier: Apache-2.0
// Gaussian grids by name: octahedral (o96), classic reduced (n320) and regular (f32). Rows run from
// north to south at the roots of the Legendre polynomial of degree 2N, points within a row from
// longitude 0 eastwards; no point lies on a pole or on the equator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/geometry.h"

namespace aifs::graph {

enum class GaussianKind { kOctahedral, kClassic, kRegular };

struct GaussianGrid {
  GaussianKind kind = GaussianKind::kOctahedral;
  int64_t number = 0;  // N: rows between a pole and the equator

  // Points on each of the 2N rows, north to south.
  std::vector<int64_t> row_lengths() const;
  int64_t num_points() const;
};

// "o96", "N320", "f32" (either case). Throws Error that lists what there is for anything else.
GaussianGrid parse_gaussian_grid(std::string_view name);

Coordinates gaussian_coordinates(const GaussianGrid& grid, int64_t num_threads = 1);

// The 2N Gaussian latitudes in degrees, north to south; exact negatives of each other. 0 threads:
// all of the machine.
std::vector<double> gaussian_latitudes(int64_t number, int64_t num_threads = 1);

}  // namespace aifs::graph
