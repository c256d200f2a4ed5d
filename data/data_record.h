// SPDX-License-Identifier: Apache-2.0
// What gives the weights of a model their meaning: the variables with their roles and order, and
// the tables that turn physical values into those that the network sees. Checkpoints keep it, so
// that weights are never used on data that mean something else.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "data/fields/dataset.h"
#include "data/fields/variables.h"
#include "data/transforms/imputer.h"
#include "data/transforms/normaliser.h"
#include "data/transforms/remapper.h"

namespace aifs::data {

struct VariableRecord {
  std::string name;
  Role role = Role::kPrognostic;
  double mean = 0.0, stdev = 0.0, minimum = 0.0, maximum = 0.0;  // physical units
  float mul = 1.0f, add = 0.0f;                                  // of the normaliser
  std::string imputer;   // "" or what NaN are filled with: "280.5", or "copy of sst"
  std::string remapper;  // "" or the rule, as JSON
};

// The dates of a dataset.
struct PeriodRecord {
  int64_t first_s = 0, last_s = 0, frequency_s = 0;
  int64_t num_rows = 0, num_missing = 0;
};

struct DataRecord {
  std::vector<VariableRecord> variables;  // all of the dataset, in its order
  std::map<int64_t, Statistics> tendencies;
  int64_t timestep_s = 0;
  // Which data, for messages and warnings.
  std::string dataset;
  int64_t num_nodes = 0;
  PeriodRecord training, validation;

  // Statistics of all variables, in order.
  Statistics statistics() const;
};

// How values get from the dataset to the network.
struct DataTables {
  const Normaliser& normaliser;
  const Imputer& imputer;
  const Remapper& remapper;
};

// Dates, and variables with their tables. `statistics` and `tendencies` are those that the tables
// were made of, before a remap of the normaliser.
PeriodRecord period_of(const DatasetInfo& info);
std::vector<VariableRecord> variable_records(const VariableTable& variables,
                                             const Statistics& statistics,
                                             const DataTables& tables);

// Numbers survive the way there and back bit for bit. from_json throws DataError naming `file` and
// the key for what is no such record.
config::Json to_json(const DataRecord& record);
DataRecord data_record_from_json(const config::Json& json, const std::string& file);

// Differences of a dataset from the one of a checkpoint, one sentence each, those of variables
// named. Names, order and roles: the tensors of the network would mean something else.
std::vector<std::string> variable_differences(const DataRecord& saved,
                                              const std::vector<std::string>& names,
                                              const VariableTable& table);
// Normaliser, imputer, remapper and timestep: values would mean something else. Both have the same
// variables in the same order, here and below.
std::vector<std::string> table_differences(const DataRecord& saved, const DataRecord& now);
// Statistics, those of tendencies included: loss weights, bounds and the like may differ even where
// tables do not.
std::vector<std::string> statistics_differences(const DataRecord& saved, const DataRecord& now);
// Dates and frequency of training and validation data: training, or its scores, change.
std::vector<std::string> period_differences(const DataRecord& saved, const DataRecord& now);

// The columns of a network's inputs and outputs, by name.
struct ColumnNames {
  std::vector<std::string> inputs, outputs;  // outputs that are diagnostic: "x (diagnostic)"
};
ColumnNames column_names(const DataRecord& record);
ColumnNames column_names(const VariableTable& variables);

// One list of columns beside the one that weights were trained with.
struct ColumnChange {
  std::vector<std::string> added, removed;
  std::vector<std::string> moved;  // "column 3 was 'a' and is 'b'", where the lists are as long
  bool same_length = true;

  bool is_same() const { return same_length && moved.empty(); }
  // "'x' is new; 'y' is left out".
  std::string text() const;
};
ColumnChange compare_columns(const std::vector<std::string>& saved,
                             const std::vector<std::string>& now);

// Both records cut to the variables that they share, in the order of `now`.
std::pair<DataRecord, DataRecord> shared_variables(const DataRecord& saved, const DataRecord& now);

}  // namespace aifs::data
