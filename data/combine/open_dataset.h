// SPDX-License-Identifier: Apache-2.0
// Makes the dataset that the section data.dataset of a configuration describes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/combine/dataset_tree.h"
#include "data/fields/dataset.h"
#include "data/zarr/store.h"

namespace aifs::data {

// Gives the store of a name as it stands in the configuration; the same for the same name.
using StoreOpener = std::function<std::shared_ptr<const zarr::Store>(const std::string& name)>;

// Throws ConfigError naming the place of an option that does not fit, DataError for what is wrong
// with a store, and ConfigError for datasets that stand side by side.
DatasetPtr open_dataset(const DatasetTree& tree, const StoreOpener& open_store);

// The datasets that stand side by side (zip, xy, x and y); of others only one.
std::vector<DatasetPtr> open_side_by_side(const DatasetTree& tree, const StoreOpener& open_store);

}  // namespace aifs::data
