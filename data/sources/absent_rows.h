// SPDX-License-Identifier: Apache-2.0
// Rows of an Anemoi dataset whose chunks are not there, though nobody called their dates missing.
// Zarr leaves chunks out that hold nothing but the fill value, and copies lose some: from outside
// the two look the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/zarr/array.h"

namespace aifs::data {

struct AbsentRows {
  std::vector<int64_t> rows;  // ascending
  bool is_exact = true;       // false: some chunks of other rows may be absent, too
};

// Positions in `stored_rows` (rows of the array (T, V, E, N), -1 for none) that lack a file with
// one of the stored `variables`; from one list of the folder of chunks. Where chunks lie in folders
// below folders, these are listed, too, unless they are very many: then only rows without any are
// found. What a shard lacks is not looked for. Nothing if the store cannot be listed.
std::optional<AbsentRows> find_absent_rows(const zarr::Array& data,
                                           std::span<const int64_t> stored_rows,
                                           std::span<const int64_t> variables);

// "dates without a chunk in 'x.zarr/data/.zarray', read as its fill value 0: 3 of 40
// (2020-01-01T...)", and which variables the fill value cannot belong to: it lies far outside what
// was ever stored.
std::string describe_absent_rows(const zarr::ArrayMeta& meta, const DatasetInfo& info,
                                 std::span<const int64_t> rows);

}  // namespace aifs::data
