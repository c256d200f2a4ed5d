// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/remembering_store.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/check.h"

namespace aifs::zarr {

using Cbor = nlohmann::json;

namespace {

constexpr size_t kMostBytes = size_t{1} << 28;  // of a value: coordinates of 30 million cells

}  // namespace

RememberingStore::RememberingStore(std::shared_ptr<const Store> inner)
    : inner_(std::move(inner)), values_(inner_->name()) {}

RememberingStore::RememberingStore(std::shared_ptr<const Store> inner, const std::string& record)
    : RememberingStore(std::move(inner)) {
  remembers_ = false;
  try {
    const Cbor json = Cbor::from_cbor(record);
    for (const auto& [key, value] : json.at("values").items())
      values_.put(key, {value.get_binary().begin(), value.get_binary().end()});
    absent_ = json.at("absent").get<std::set<std::string>>();
    if (json.contains("root")) root_names_ = json["root"].get<std::vector<std::string>>();
    names_below_ = json.at("below").get<std::map<std::string, std::vector<std::string>>>();
  } catch (const Cbor::exception&) {
    throw DataError(concat("what another rank remembered of '", name(), "' arrived damaged"));
  }
  // Absent chunks are an ordinary answer, so another folder would go unnoticed.
  for (const char* key : {"data/.zarray", "data/zarr.json"}) {
    const auto known = values_.values().find(key);
    if (known == values_.values().end()) continue;
    Buffer here;
    const std::string& there = known->second;
    if (!inner_->get(key, kMostBytes, here) ||
        std::string_view(reinterpret_cast<const char*>(here.data()), here.size()) != there) {
      throw DataError(concat("'", path_of(key), "' on this host is not that of the first rank"),
                      "all ranks must see the same dataset under this path");
    }
  }
}

std::string RememberingStore::record() const {
  const std::lock_guard lock(mutex_);
  Cbor json{{"values", Cbor::object()}, {"absent", absent_}, {"below", names_below_}};
  for (const auto& [key, value] : values_.values())
    json["values"][key] = Cbor::binary({value.begin(), value.end()});
  if (root_names_) json["root"] = *root_names_;
  std::string bytes;
  Cbor::to_cbor(json, bytes);
  return bytes;
}

void RememberingStore::stop() {
  const std::lock_guard lock(mutex_);
  remembers_ = false;
}

const Store& RememberingStore::knowing(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  if (values_.values().contains(key) || absent_.contains(key)) return values_;
  if (!remembers_) return *inner_;
  const std::optional<size_t> size = inner_->size(key);
  if (size && *size > kMostBytes) return *inner_;
  Buffer whole;
  if (inner_->get(key, kMostBytes, whole)) {
    values_.put(key, {reinterpret_cast<const char*>(whole.data()), whole.size()});
  } else {
    absent_.insert(key);
  }
  return values_;
}

bool RememberingStore::get(const std::string& key, size_t max_bytes, Buffer& out) const {
  return knowing(key).get(key, max_bytes, out);
}

bool RememberingStore::get_range(const std::string& key, size_t offset, size_t length,
                                 Buffer& out) const {
  return knowing(key).get_range(key, offset, length, out);
}

std::unique_ptr<const ValueFile> RememberingStore::open(const std::string& key) const {
  return knowing(key).open(key);
}

std::optional<size_t> RememberingStore::size(const std::string& key) const {
  return knowing(key).size(key);
}

std::optional<std::vector<std::string>> RememberingStore::names_below(
    const std::string& folder) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = names_below_.find(folder); known != names_below_.end())
    return known->second;
  std::optional<std::vector<std::string>> names = inner_->names_below(folder);
  if (remembers_ && names) names_below_[folder] = *names;
  return names;
}

std::vector<std::string> RememberingStore::root_names() const {
  const std::lock_guard lock(mutex_);
  if (root_names_) return *root_names_;
  std::vector<std::string> names = inner_->root_names();
  if (remembers_) root_names_ = names;
  return names;
}

}  // namespace aifs::zarr
