// SPDX-License-Identifier: Apache-2.0
// Compares the data of a run with those that weights of a checkpoint were trained on. For
// make_data(), which documents the errors; a record of the checkpoint's data is there.
#pragma once

#include "app/run/data_parts.h"
#include "app/run/saved_data.h"
#include "train/output/init_weights.h"

namespace aifs::app {

// Says whether statistics of the checkpoint take the place of the dataset's.
bool takes_saved_tables(const RunConfig& config, const SavedData& saved);

// Statistics and tendencies of the variables that the checkpoint knows, by name.
void take_saved_statistics(const data::DataRecord& saved, const data::DatasetInfo& info,
                           DataParts& parts);

// Names, order and roles. Where weights start a new run, inputs and outputs count each for itself:
// a list of another length changes the shapes of tensors, on which init.may_skip decides; with
// init.variables_by_name any list will do.
void check_variables(const RunConfig& config, const SavedData& saved, DataParts& parts);

// Which columns of inputs and outputs are those of the weights, by the names of variables; nothing
// unless init.variables_by_name asks for it. Throws ConfigError if the checkpoint does not say what
// its variables are.
std::optional<train::VariableMatch> variable_match(const RunConfig& config, const SavedData& saved,
                                                   const data::VariableTable& variables);

// Tables, statistics and dates, of the variables that both have. After all tables are made.
void check_tables(const RunConfig& config, const SavedData& saved, const data::DatasetInfo& info,
                  DataParts& parts);

}  // namespace aifs::app
