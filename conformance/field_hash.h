// SPDX-License-Identifier: Apache-2.0
// Hashes as the dataset references define them: SHA-256 of little-endian numbers in C order, every
// NaN as 0x7fc00000 (or 0x7ff8000000000000). Fields count as (variable, member, cell).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "data/fields/dataset.h"
#include "data/zarr/array.h"

namespace aifs::conformance {

void add_to_hash(std::vector<float> values, Sha256& hash);
std::string hash_of(std::vector<float> values);
std::string hash_of(std::vector<double> values);

// One index of a slice: [begin, end), or a single position, which drops the axis.
struct AxisIndex {
  int64_t begin = 0, end = 0;
  bool single = false;
};

// "[7, :, 0, 150:350]" or "data[3:9,15,0,600:] (comment)" over an array of this shape.
// Throws Error for what is no slice, NotUnderstood for an index such as "::2".
std::vector<AxisIndex> parse_slice(const std::string& text, const std::vector<int64_t>& shape);

// Shape that numpy gives the slice.
std::vector<int64_t> shape_of(const std::vector<AxisIndex>& slice);

// Hash of a slice of the stored array, as float32.
std::string hash_of(const zarr::Array& array, const std::vector<AxisIndex>& slice);

// One row of a dataset as (V, E, N).
std::vector<float> read_fields(const data::Dataset& dataset, int64_t row);

// A slice of (rows, V, E, N), read through the dataset.
std::vector<float> read_slice(const data::Dataset& dataset, const std::vector<AxisIndex>& slice);

// Hash of all rows that are not missing.
std::string hash_of_readable_rows(const data::Dataset& dataset);

}  // namespace aifs::conformance
