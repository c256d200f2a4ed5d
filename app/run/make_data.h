// SPDX-License-Identifier: Apache-2.0
// Makes the data of a run from its configuration. Where weights of a checkpoint are used, the
// tables between physical and normalised values may be those of the checkpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/run/data_parts.h"
#include "app/run/saved_data.h"

namespace aifs::app {

// Opens the data of a configuration from its stores; null for those that are no files. With
// `saved`, the tables are those that data.tables chooses; what differs from the checkpoint in a way
// that gives its weights another meaning is a DataError (ConfigError where weights of another run
// start a new one) that names each difference, what only changes the course of training is a
// warning. Throws ConfigError, DataError. Local.
DataParts make_data(const RunConfig& config, const std::shared_ptr<DataStores>& stores,
                    const SavedData* saved = nullptr);

// The data of all datasets of a configuration, which have the same dates: one, or those of
// data.datasets in their order. Throws as make_data(), naming the dataset, and DataError for dates
// or datasets that differ from each other, or from those of a checkpoint.
std::vector<DataParts> make_datasets(const RunConfig& config,
                                     const std::shared_ptr<DataStores>& stores,
                                     const SavedData* saved = nullptr);

// Throws ConfigError (path "data.datasets") for a configuration of several, where only one dataset
// will do: `what` says why.
void require_one_dataset(const RunConfig& config, const std::string& what, const std::string& hint);

}  // namespace aifs::app
