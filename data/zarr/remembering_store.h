// SPDX-License-Identifier: Apache-2.0
// A store that remembers what it was asked for, so that others can open the same hierarchy without
// touching its files: one process reads the metadata, the record travels, the others open from it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/zarr/store.h"

namespace aifs::zarr {

class RememberingStore : public Store {
 public:
  // Remembers answers of `inner`, whole values that is but for very large ones, until stop().
  explicit RememberingStore(std::shared_ptr<const Store> inner);
  // Answers from a record, and where that has no answer from `inner`. Remembers nothing more.
  // Throws DataError if it is no record, or one of another dataset than that of `inner`.
  RememberingStore(std::shared_ptr<const Store> inner, const std::string& record);

  // Returns what was remembered, as bytes (CBOR).
  std::string record() const;
  void stop();

  const std::string& name() const override { return inner_->name(); }
  bool get(const std::string& key, size_t max_bytes, Buffer& out) const override;
  bool get_range(const std::string& key, size_t offset, size_t length, Buffer& out) const override;
  std::unique_ptr<const ValueFile> open(const std::string& key) const override;
  std::optional<size_t> size(const std::string& key) const override;
  std::optional<std::vector<std::string>> names_below(const std::string& folder) const override;
  std::vector<std::string> root_names() const override;
  int64_t bytes_read() const override { return inner_->bytes_read(); }
  bool drop_copy(const std::string& key) const override { return inner_->drop_copy(key); }

 private:
  // The store that knows the key, after remembering it if that is wanted.
  const Store& knowing(const std::string& key) const;

  std::shared_ptr<const Store> inner_;
  mutable std::mutex mutex_;
  mutable MemoryStore values_;
  mutable std::set<std::string> absent_;
  mutable std::optional<std::vector<std::string>> root_names_;
  mutable std::map<std::string, std::vector<std::string>> names_below_;
  bool remembers_ = true;
};

}  // namespace aifs::zarr
