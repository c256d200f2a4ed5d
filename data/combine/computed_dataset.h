// SPDX-License-Identifier: Apache-2.0
// Datasets whose rows are computed from rows or cells of another: blends and means of dates, and
// values of the nearest cells. Each row is read as a whole; rows that are those of the source are
// handed on in its pieces.
#pragma once

#include <span>
#include <vector>

#include "data/fields/dataset.h"

namespace aifs::data {

// Rows of a source that make a row: one alone, the blend (1 - alpha) first + alpha second of two,
// or the mean of several, of what is not NaN.
struct RowMix {
  enum class Kind { kAlone, kBlend, kMean };
  Kind kind = Kind::kAlone;
  std::vector<int64_t> rows = {};  // of the source; none of those that are used may be missing
  double alpha = 0.0;
  // Blends of numbers that the reference takes as float64 are rounded once, others at each step.
  bool in_double = false;
};

// `info` describes the result; its missing rows have no mix.
DatasetPtr mix_rows(DatasetPtr source, DatasetInfo info, std::vector<RowMix> mixes);

// Each cell of the result is the mean of cells of the source with weights, both (N, k); index -1:
// NaN. `info` describes the result; variables are those of the source.
struct CellMix {
  int64_t num_neighbours = 1;  // k
  std::vector<int64_t> cells = {};
  std::vector<float> weights = {};  // empty: k is 1, and values are taken as they are
};
DatasetPtr mix_cells(DatasetPtr source, DatasetInfo info, CellMix mix);

}  // namespace aifs::data
