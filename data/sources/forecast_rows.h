// SPDX-License-Identifier: Apache-2.0
// The rows of one forecast: input states as a dataset has them, then times to come, of which only
// forcings are known: computed from place and date, constant, or read from the dataset where it
// goes on.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/fields/dataset.h"

namespace aifs::data {

struct ForecastRowsOptions {
  int64_t start_s = 0;  // date of the newest input state
  int64_t timestep_s = 0;
  int64_t num_states = 1;  // input states, one timestep apart
  int64_t num_times = 1;   // times to come
  // Columns that are needed at times to come. Those that are neither computed nor constant are read
  // from the dataset.
  std::vector<int64_t> needed = {};
  std::vector<std::string> constant = {};  // variables besides DatasetInfo::constant_fields
};

// Row i is the date start + (i - num_states + 1) * timestep. Columns of times to come that are not
// needed have the mean of the statistics everywhere.
class ForecastRows : public Dataset {
 public:
  // `states` has the dates of all input states. Throws DataError naming dataset, variable and date
  // for a state, or a forcing of a time to come, that the dataset has not.
  ForecastRows(DatasetPtr states, ForecastRowsOptions options);

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, NodeRange nodes, std::span<float> out) const override;
  // The pieces of the dataset for input states; each variable by itself for times to come.
  std::unique_ptr<RowReader> open_row(int64_t row, NodeRange nodes) const override;

  // Names of the needed variables that are read from the dataset at times to come.
  const std::vector<std::string>& from_dataset() const { return read_names_; }

 private:
  class TimeToCome;

  bool is_state(int64_t row) const { return row < options_.num_states; }
  // Row of the dataset of a date, or -1 if it has no values there.
  int64_t row_of(int64_t date_s) const;
  void require_states() const;
  void require_times_to_come() const;
  // The constant fields of some cells, (E, constant columns, n).
  std::shared_ptr<const std::vector<float>> constant_fields(NodeRange nodes) const;

  DatasetPtr states_;
  ForecastRowsOptions options_;
  DatasetInfo info_;
  std::vector<int64_t> computed_, read_, constant_;  // columns of the needed variables
  std::vector<int64_t> unused_;                      // the others
  std::vector<std::string> read_names_;
  mutable std::mutex mutex_;
  // What constant_fields() gave last.
  mutable NodeRange kept_nodes_{0, 0};
  mutable std::shared_ptr<const std::vector<float>> kept_;
};

}  // namespace aifs::data
