// SPDX-License-Identifier: Apache-2.0
// The files of a run: each store that its dataset names, opened once, from a copy on a disk of this
// host if there is one. What the first process reads when it opens them can be told to the others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/run/run_config.h"
#include "data/zarr/remembering_store.h"

namespace aifs::app {

class DataStores {
 public:
  using StorePtr = std::shared_ptr<const zarr::Store>;
  using Wrapper = std::function<StorePtr(StorePtr store)>;

  explicit DataStores(const RunConfig& config);

  // The store of a name in data.dataset. Throws DataError.
  StorePtr open(const std::string& name);

  // For stores that are opened from now on: they remember what they are asked, until record(); or
  // they answer from the record of another process; or something is put around them.
  void remember() { remembers_ = true; }
  std::string record();
  void recall(const std::string& record);
  void wrap(Wrapper wrapper) { wrapper_ = std::move(wrapper); }

  // Counts what the files of all stores have given.
  int64_t bytes_read() const;
  // True before one is opened, and for data that are no stores (netCDF).
  bool empty() const { return stores_.empty(); }

 private:
  data::CacheOptions cache_;
  bool remembers_ = false;
  std::map<std::string, std::string> records_;  // by name
  Wrapper wrapper_;
  std::map<std::string, StorePtr> stores_;  // by name
  std::map<std::string, std::shared_ptr<zarr::RememberingStore>> remembering_;
};

// The stores of the dataset of a configuration, or null if that is no file.
std::shared_ptr<DataStores> open_stores(const RunConfig& config);

}  // namespace aifs::app
