// SPDX-License-Identifier: Apache-2.0
// Statistics of variables over many dates, computed as anemoi-datasets computes them: NaN left out,
// every cell with weight 1, fp64, population standard deviation, groups of values joined by Chan's
// update (Chan, Golub and LeVeque 1983). Tendencies are differences in the type of the data.
//
// The result does not depend on the number of threads: dates are joined in blocks of fixed size.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "data/fields/dataset.h"
#include "data/fields/work_threads.h"

namespace aifs::data {

struct Moments {
  int64_t count = 0;
  double mean = 0.0, m2 = 0.0;  // m2: sum of squared distances from the mean
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -std::numeric_limits<double>::infinity();

  // Those of some values; NaN are left out.
  template <class T>
  static Moments of(std::span<const T> values);
  void join(const Moments& other);
};

// The statistics of variables; all NaN for one without values.
Statistics to_statistics(std::span<const Moments> variables);

struct StatisticsWindow {
  int64_t first_row = 0, end_row = 0;
  std::vector<int64_t> missing_rows = {};  // ascending
  std::vector<int64_t> lags = {};          // in rows, ascending: tendencies over so many
};

struct FieldsOfRow {
  int64_t variables = 1;
  int64_t values = 1;  // of a variable: members times cells
};

struct ComputedStatistics {
  Statistics all;
  std::vector<Statistics> tendencies;  // one for each lag
};

// Gives the fields of a row, variable after variable. Called by several threads.
template <class T>
using RowFields = std::function<void(int64_t row, std::span<T> out)>;

// T is float or double. What `read` throws is thrown on. `progress` may be null.
template <class T>
ComputedStatistics compute_statistics(const StatisticsWindow& window, const FieldsOfRow& fields,
                                      const RowFields<T>& read, int64_t threads,
                                      ProgressSink* progress);

// The last date of the statistics if a dataset does not say: the first 80 % of the dates if they
// are less than ten years, else without the last year, from twenty years on without the last three.
int64_t default_statistics_end(std::span<const int64_t> dates_s);

}  // namespace aifs::data
