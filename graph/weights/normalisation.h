// SPDX-License-Identifier: Apache-2.0
// How attributes of nodes and edges are scaled. The statistics run over all values (all columns
// together), or over the values of each group, column by column. Two traps that come from Anemoi:
// unit-std does not remove the mean (and divides by the sample deviation, N - 1, without groups but
// by the population deviation, N, with them); unit-range without groups divides by the maximum, not
// by the range.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/enum_names.h"
#include "core/peers.h"

namespace aifs::graph {

enum class Norm { kNone, kL1, kL2, kUnitMax, kUnitRange, kUnitStd, kLog1p };

// v / sum v, v / sqrt(sum v^2), v / max v, (v - min) / max, v / std, ln(1 + v). Statistics are
// summed in double. A statistic of 0 is a NumericalError, except a deviation of 0 (below 1e-6 of
// the largest value: edges of one length): unchanged. Sums are of blocks of fixed size, whatever
// the number of threads (0: all of the machine).
template <class Real>
void normalise(Norm norm, std::vector<Real>& values, int64_t num_threads = 1);
// Of a part of the values, which peers have the rest of: parts begin with a block of
// parallel_for(), and give the same bits as all values at once. Collective.
template <class Real>
void normalise(Norm norm, std::vector<Real>& values, int64_t num_threads, Peers& peers);

// The same within groups: values (M, width), group[m] in [0, num_groups). unit-range divides by
// max - min; a range or deviation of 0 counts as 1.
template <class Real>
void normalise_grouped(Norm norm, std::vector<Real>& values, int64_t width,
                       std::span<const int32_t> group, int64_t num_groups);

constexpr auto enum_table(Norm) {
  using enum Norm;
  return std::to_array<EnumName<Norm>>({{kNone, "none"},
                                        {kL1, "l1"},
                                        {kL2, "l2"},
                                        {kUnitMax, "unit-max"},
                                        {kUnitRange, "unit-range"},
                                        {kUnitStd, "unit-std"},
                                        {kLog1p, "log1p"}});
}

}  // namespace aifs::graph
