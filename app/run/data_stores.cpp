// SPDX-License-Identifier: Apache-2.0
#include "app/run/data_stores.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "data/sources/anemoi_dataset.h"
#include "data/zarr/caching_store.h"

namespace aifs::app {

DataStores::DataStores(const RunConfig& config) : cache_(config.data.cache) {}

DataStores::StorePtr DataStores::open(const std::string& name) {
  StorePtr& store = stores_[name];
  if (store) return store;
  StorePtr opened = data::open_store(name);
  if (!cache_.dir.empty()) {
    if (!fs::is_directory(name)) {
      throw ConfigError("data.cache.dir",
                        concat("'", name,
                               "' is one file, and only the chunks of "
                               "a folder are copied"),
                        "unpack it, or copy the file yourself and leave data.cache out");
    }
    const auto limit_bytes = static_cast<int64_t>(cache_.limit_gib * (1 << 30));
    opened = std::make_shared<zarr::CachingStore>(name, cache_.dir, limit_bytes);
  }
  if (const auto known = records_.find(name); known != records_.end()) {
    opened = std::make_shared<zarr::RememberingStore>(opened, known->second);
  } else if (remembers_) {
    remembering_[name] = std::make_shared<zarr::RememberingStore>(opened);
    opened = remembering_[name];
  }
  store = wrapper_ ? wrapper_(opened) : opened;
  return store;
}

std::string DataStores::record() {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, store] : remembering_) {
    store->stop();
    const std::string record = store->record();
    json[name] = nlohmann::json::binary({record.begin(), record.end()});
  }
  remembers_ = false;
  std::string bytes;
  nlohmann::json::to_cbor(json, bytes);
  return bytes;
}

void DataStores::recall(const std::string& record) {
  try {
    const nlohmann::json json = nlohmann::json::from_cbor(record);
    for (const auto& [name, value] : json.items())
      records_[name] = {value.get_binary().begin(), value.get_binary().end()};
  } catch (const nlohmann::json::exception&) {
    throw DataError("what another rank remembered of the dataset arrived damaged");
  }
}

int64_t DataStores::bytes_read() const {
  int64_t bytes = 0;
  for (const auto& [name, store] : stores_)
    bytes += store->bytes_read();
  return bytes;
}

std::shared_ptr<DataStores> open_stores(const RunConfig& config) {
  if (config.data.kind == data::SourceKind::kAnalytic) return nullptr;
  return std::make_shared<DataStores>(config);
}

}  // namespace aifs::app
