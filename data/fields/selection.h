// SPDX-License-Identifier: Apache-2.0
// Which rows and variables of a dataset the options keep. Pure. Grammar and order are Anemoi's
// (start/end, frequency, select, drop), with two differences: a period without a single date is an
// error, where Anemoi gives an empty dataset or the nearest date; and so is a variable named twice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/fields/dataset_options.h"

namespace aifs::data {

// Rows of an axis with equal steps, ascending. An incomplete start is its first second, an
// incomplete end its last; dates between two rows round inwards. "x%" of T dates as start is row
// trunc(x T / 100 - tiny), as end the row before trunc(x T / 100 + tiny): where x T / 100 is a
// whole number, "x%" as end of one period and as start of the next share one date. From the first
// row on every k-th is kept, k = frequency / frequency_s. Throws ConfigError naming the option and
// what the dataset has.
std::vector<int64_t> select_rows(std::span<const int64_t> dates_s, int64_t frequency_s,
                                 const DatasetOptions& options);

// Columns in the order of `select` (of the dataset, if it is empty), without those in `drop`.
// Throws ConfigError with near names for unknown variables, for one named twice, and if none stays.
std::vector<int64_t> select_columns(const std::vector<std::string>& variables,
                                    const DatasetOptions& options);

}  // namespace aifs::data
