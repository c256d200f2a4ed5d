// SPDX-License-Identifier: Apache-2.0
// A dataset seen in another way: fewer or other dates, variables, members and cells, other names,
// scaled values, statistics from elsewhere. Values stay in their files; only what is known of them
// changes. Arguments must fit the dataset: they are those of the factory, which has checked them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/fields/units.h"

namespace aifs::data {

// Some rows, ascending and equally spaced.
DatasetPtr with_rows(const DatasetPtr& dataset, const std::vector<int64_t>& rows);
// Some variables, in this order.
DatasetPtr with_columns(const DatasetPtr& dataset, const std::vector<int64_t>& columns);
// Some members, in this order.
DatasetPtr with_members(const DatasetPtr& dataset, const std::vector<int64_t>& members);
// Some cells, ascending. `field_shape` is empty if they are no rectangle.
DatasetPtr with_cells(const DatasetPtr& dataset, const std::vector<int64_t>& cells,
                      const std::vector<int64_t>& field_shape = {});
// New names (V).
DatasetPtr with_names(const DatasetPtr& dataset, const std::vector<std::string>& names);
// (V) what is done to values; statistics follow. Factors are not negative.
DatasetPtr with_maps(const DatasetPtr& dataset, const std::vector<UnitMap>& maps);
// Statistics and tendencies (V) of others.
DatasetPtr with_statistics(const DatasetPtr& dataset, const std::optional<Statistics>& statistics,
                           const std::optional<std::map<int64_t, Statistics>>& tendencies);
// Further missing rows.
DatasetPtr with_missing(const DatasetPtr& dataset, const std::vector<int64_t>& rows);
// No missing rows: those that are missing have the values of the closest one that is there, the
// later one of two, or lie between the two around them; then those before the first and behind the
// last stay missing.
enum class MissingFill { kClosest, kInterpolate };
DatasetPtr with_filled_rows(const DatasetPtr& dataset, MissingFill fill);
// `ratio` rows for each but the last, linear in time.
DatasetPtr with_rows_between(const DatasetPtr& dataset, int64_t ratio);
// Means of `before` rows before, the row, and `after` rows after it.
DatasetPtr with_means(const DatasetPtr& dataset, int64_t before, int64_t after);

}  // namespace aifs::data
