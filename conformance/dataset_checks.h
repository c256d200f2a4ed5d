// SPDX-License-Identifier: Apache-2.0
// Compares a dataset with what a reference JSON says of it, key by key.
#pragma once

#include <string>
#include <vector>

#include "conformance/case_file.h"
#include "conformance/report.h"
#include "data/sources/anemoi_dataset.h"

namespace aifs::conformance {

// Equal numbers; NaN may be null or "NaN" in the JSON.
bool same_numbers(const Json& expected, const std::vector<double>& values);

// The value of a frequency in seconds.
int64_t seconds_of(const Json& frequency);

// Every key of `expected` that describes a whole store: shape, chunks, variables, dates,
// statistics, hashes of slices, single values, ... Keys that describe how it was made are passed
// over.
void check_store(const Json& expected, const data::AnemoiDataset& dataset, Comparison& comparison);

// Every key of one set of open_dataset options.
void check_options_result(const Json& expected, const data::Dataset& dataset,
                          Comparison& comparison);

// Checks datasets that stand side by side, whose values are given as lists.
void check_side_by_side(const Json& expected, const std::vector<data::DatasetPtr>& datasets,
                        Comparison& comparison);

}  // namespace aifs::conformance
