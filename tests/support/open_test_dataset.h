// SPDX-License-Identifier: Apache-2.0
// Datasets of small stores in memory, opened as a configuration would open them.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/check.h"
#include "data/combine/open_dataset.h"
#include "tests/support/zarr_writer.h"

namespace aifs::test {

using Stores = std::map<std::string, std::shared_ptr<const zarr::Store>>;

inline data::StoreOpener opener_of(const Stores& stores) {
  return [&stores](const std::string& name) {
    const auto found = stores.find(name);
    if (found == stores.end()) throw DataError("there is no store '" + name + "'");
    return found->second;
  };
}

inline data::DatasetPtr open(const Stores& stores, const std::string& json) {
  const auto tree = data::parse_dataset(config::parse_json(json, "test"), "data.dataset");
  return data::open_dataset(tree, opener_of(stores));
}

// The value of variable v, member e, cell n of a row, read alone with its cell.
inline float value_at(const data::Dataset& dataset, int64_t row, int64_t v, int64_t e, int64_t n) {
  const data::DatasetInfo& info = dataset.info();
  std::vector<float> values(static_cast<size_t>(info.ensemble_size * info.num_variables()));
  dataset.read(row, {n, n + 1}, values);
  return values[static_cast<size_t>(e * info.num_variables() + v)];
}

// A whole row (E, N, V).
inline std::vector<float> row_of(const data::Dataset& dataset, int64_t row) {
  const data::DatasetInfo& info = dataset.info();
  std::vector<float> values(
      static_cast<size_t>(info.ensemble_size * info.num_nodes() * info.num_variables()));
  dataset.read(row, {0, info.num_nodes()}, values);
  return values;
}

}  // namespace aifs::test
