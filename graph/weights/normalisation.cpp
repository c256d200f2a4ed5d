// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/normalisation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "graph/base/parallel_for.h"

namespace aifs::graph {

namespace {

// Values that differ by less, relative to the largest, are equal up to float32 rounding.
constexpr double kRoundingNoise = 1e-6;

struct Statistics {
  int64_t count = 0;
  double sum = 0.0, sum_of_squares = 0.0, sum_of_deviations2 = 0.0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  void add(double value) {
    ++count;
    sum += value;
    sum_of_squares += value * value;
    min = std::min(min, value);
    max = std::max(max, value);
  }
  void add(const Statistics& others) {
    count += others.count;
    sum += others.sum;
    sum_of_squares += others.sum_of_squares;
    min = std::min(min, others.min);
    max = std::max(max, others.max);
  }
  // Second pass, once the mean is known.
  void add_deviation(double value) {
    const double deviation = value - sum / static_cast<double>(count);
    sum_of_deviations2 += deviation * deviation;
  }
};

double nonzero(double statistic, const char* what) {
  if (statistic == 0.0) {
    throw NumericalError(concat("cannot normalise by ", what, ", which is 0"));
  }
  return statistic;
}

// What is subtracted, and what the rest is divided by.
struct Scaling {
  double offset = 0.0, divisor = 1.0;
};

// The deviation, or 1 if it is not above `least`.
double deviation(const Statistics& s, int64_t degrees_of_freedom, double least) {
  if (degrees_of_freedom < 1) return 1.0;
  const double value = std::sqrt(s.sum_of_deviations2 / static_cast<double>(degrees_of_freedom));
  return value > least ? value : 1.0;
}

Scaling scaling(Norm norm, const Statistics& s, bool grouped) {
  switch (norm) {
    case Norm::kL1:
      return {0.0, nonzero(s.sum, "the sum")};
    case Norm::kL2:
      return {0.0, nonzero(std::sqrt(s.sum_of_squares), "the Euclidean norm")};
    case Norm::kUnitMax:
      return {0.0, nonzero(s.max, "the maximum")};
    case Norm::kUnitRange:
      if (grouped) return {s.min, s.max == s.min ? 1.0 : s.max - s.min};
      return {s.min, nonzero(s.max, "the maximum")};
    case Norm::kUnitStd:
      if (grouped) return {0.0, deviation(s, s.count, 0.0)};
      return {0.0, deviation(s, s.count - 1, kRoundingNoise * std::max(-s.min, s.max))};
    case Norm::kNone:
    case Norm::kLog1p:
      break;
  }
  return {};
}

template <class Real>
void log1p_of(std::vector<Real>& values) {
  for (Real& value : values)
    value = std::log1p(value);
}

// Statistics of all values, those of blocks one after the other; with peers of theirs, too.
template <class Real>
Statistics statistics_of(const std::vector<Real>& values, bool deviations, int64_t num_threads,
                         Peers* peers) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<Statistics> blocks(static_cast<size_t>(num_blocks(count)));
  Statistics all;
  parallel_for(count, num_threads, [&](int64_t block, int64_t begin, int64_t end) {
    Statistics own;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      own.add(static_cast<double>(values[i]));
    blocks[static_cast<size_t>(block)] = own;
  });
  if (peers) blocks = gather(*peers, blocks).values;
  for (const Statistics& block : blocks)
    all.add(block);
  if (!deviations) return all;
  std::vector<double> deviations2(static_cast<size_t>(num_blocks(count)));
  const double mean = all.sum / static_cast<double>(all.count);
  parallel_for(count, num_threads, [&](int64_t block, int64_t begin, int64_t end) {
    double own = 0.0;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const double deviation = static_cast<double>(values[i]) - mean;
      own += deviation * deviation;
    }
    deviations2[static_cast<size_t>(block)] = own;
  });
  if (peers) deviations2 = gather(*peers, deviations2).values;
  all.sum_of_deviations2 = std::accumulate(deviations2.begin(), deviations2.end(), 0.0);
  return all;
}

// Normalises values[i] with the statistics of bin(i) of `num_bins`.
template <class Real, class Bin>
void normalise_bins(Norm norm, std::vector<Real>& values, size_t num_bins, const Bin& bin) {
  std::vector<Statistics> statistics(num_bins);
  for (size_t i = 0; i < values.size(); ++i)
    statistics[bin(i)].add(static_cast<double>(values[i]));
  if (norm == Norm::kUnitStd) {
    for (size_t i = 0; i < values.size(); ++i)
      statistics[bin(i)].add_deviation(static_cast<double>(values[i]));
  }
  std::vector<Scaling> scalings(num_bins);
  for (size_t b = 0; b < num_bins; ++b) {
    if (statistics[b].count > 0) scalings[b] = scaling(norm, statistics[b], /*grouped=*/true);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Scaling& s = scalings[bin(i)];
    values[i] = (values[i] - static_cast<Real>(s.offset)) / static_cast<Real>(s.divisor);
  }
}

template <class Real>
void normalise_all(Norm norm, std::vector<Real>& values, int64_t num_threads, Peers* peers) {
  if (norm == Norm::kNone) return;
  if (norm == Norm::kLog1p) return log1p_of(values);
  const Statistics statistics = statistics_of(values, norm == Norm::kUnitStd, num_threads, peers);
  if (statistics.count == 0) return;
  const Scaling s = scaling(norm, statistics, /*grouped=*/false);
  const auto offset = static_cast<Real>(s.offset), divisor = static_cast<Real>(s.divisor);
  parallel_for(static_cast<int64_t>(values.size()), num_threads,
               [&](int64_t, int64_t begin, int64_t end) {
                 for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
                   values[i] = (values[i] - offset) / divisor;
               });
}

}  // namespace

template <class Real>
void normalise(Norm norm, std::vector<Real>& values, int64_t num_threads) {
  normalise_all(norm, values, num_threads, nullptr);
}

template <class Real>
void normalise(Norm norm, std::vector<Real>& values, int64_t num_threads, Peers& peers) {
  normalise_all(norm, values, num_threads, &peers);
}

template <class Real>
void normalise_grouped(Norm norm, std::vector<Real>& values, int64_t width,
                       std::span<const int32_t> group, int64_t num_groups) {
  if (norm == Norm::kNone) return;
  if (norm == Norm::kLog1p) return log1p_of(values);
  const auto columns = static_cast<size_t>(width);
  AIFS_CHECK(values.size() == group.size() * columns, values.size(), " values in ", group.size(),
             " rows of ", width);
  normalise_bins(norm, values, static_cast<size_t>(num_groups) * columns, [&](size_t i) {
    return static_cast<size_t>(group[i / columns]) * columns + i % columns;
  });
}

template void normalise(Norm, std::vector<float>&, int64_t);
template void normalise(Norm, std::vector<double>&, int64_t);
template void normalise(Norm, std::vector<float>&, int64_t, Peers&);
template void normalise(Norm, std::vector<double>&, int64_t, Peers&);
template void normalise_grouped(Norm, std::vector<float>&, int64_t, std::span<const int32_t>,
                                int64_t);
template void normalise_grouped(Norm, std::vector<double>&, int64_t, std::span<const int32_t>,
                                int64_t);

}  // namespace aifs::graph
