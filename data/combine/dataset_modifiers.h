// SPDX-License-Identifier: Apache-2.0
// The options that change one dataset, in the order in which Anemoi applies them however they are
// written: fill_missing_dates, start and end, frequency, select, drop, reorder, rename, rescale,
// statistics, mask, trim_edge, thinning, area, number, set_missing_dates, interpolate_frequency,
// rolling_average.
#pragma once

#include <functional>
#include <string>

#include "data/combine/dataset_tree.h"
#include "data/fields/dataset.h"

namespace aifs::data {

// Opens a dataset that an option names: json and its place in the configuration.
using InnerOpener = std::function<DatasetPtr(const config::Json& json, const std::string& path)>;

// Throws ConfigError naming the option that does not fit the dataset.
DatasetPtr apply_options(const DatasetPtr& dataset, const DatasetTree& tree,
                         const InnerOpener& open);

// True if a tree has any of these options.
bool has_options(const DatasetTree& tree);

// Variables in alphabetical order.
DatasetPtr sorted_by_name(const DatasetPtr& dataset);

}  // namespace aifs::data
