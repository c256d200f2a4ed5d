// SPDX-License-Identifier: Apache-2.0
// Statistics and tendencies of the fields of an Anemoi dataset on disk, and writing them into it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/fields/work_threads.h"
#include "data/zarr/store.h"

namespace aifs::data {

struct StatisticsOptions {
  // Ends of the period, as data.dataset.start and end; empty: those of the store's own statistics.
  std::string start = {}, end = {};
  // Differences in time; none given: those that the store has.
  std::optional<std::vector<int64_t>> deltas_s = {};
  int64_t threads = 0;  // 0: as many as there are cores
};

struct StoreStatistics {
  std::vector<std::string> variables;
  int64_t frequency_s = 0;
  int64_t first_s = 0, last_s = 0;  // dates of the period that the store has
  Statistics computed, stored;      // stored: NaN where there are none
  std::map<int64_t, Statistics> tendencies, stored_tendencies;  // by time difference
};

// Reads all fields of the period: its ends are those of the options, else of the attributes
// statistics_start_date and statistics_end_date, else Anemoi's usual ones. Throws ConfigError for
// options that do not fit, DataError.
StoreStatistics compute_store_statistics(const std::shared_ptr<const zarr::Store>& store,
                                         const StatisticsOptions& options, ProgressSink* progress);

// Puts computed statistics and tendencies, and their period, into the store in a folder. Each array
// is replaced at once; a reader meanwhile may see some old, some new ones. Throws DataError, Error.
void write_statistics(const std::string& folder, const StoreStatistics& statistics);

// The largest difference of computed and stored values: of means, minima and maxima relative to
// what the variable ranges over, of standard deviations relative to themselves; and where it is.
// Nothing if there are no stored ones.
struct StatisticsDifference {
  double largest = 0.0;
  std::string where;  // "mean of msl"
};
std::optional<StatisticsDifference> largest_difference(const std::vector<std::string>& variables,
                                                       const Statistics& computed,
                                                       const Statistics& stored);

}  // namespace aifs::data
