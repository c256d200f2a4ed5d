// SPDX-License-Identifier: Apache-2.0
// A hierarchy in one zip file, whose members are named by their keys: "data/17.0.0.0". Stored
// members are read in ranges where they lie, deflated ones as a whole into memory. The directory is
// read once; the file must not change while it is open.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "data/zarr/store.h"
#include "data/zarr/zip_directory.h"

namespace aifs::zarr {

class ZipStore : public Store {
 public:
  // Throws DataError naming the file and what is wrong with it.
  explicit ZipStore(std::string path);

  const std::string& name() const override { return path_; }
  bool get(const std::string& key, size_t max_bytes, Buffer& out) const override;
  bool get_range(const std::string& key, size_t offset, size_t length, Buffer& out) const override;
  std::unique_ptr<const ValueFile> open(const std::string& key) const override;
  std::optional<size_t> size(const std::string& key) const override;
  std::optional<std::vector<std::string>> names_below(const std::string& folder) const override;
  std::vector<std::string> root_names() const override;
  int64_t bytes_read() const override { return bytes_read_; }

 private:
  const ZipMember* find(const std::string& key) const;
  // The whole value, checked.
  void read_whole(const std::string& key, const ZipMember& member, Buffer& out) const;
  std::vector<std::string> names_under(const std::string& prefix) const;

  std::string path_;
  mutable ByteCounter bytes_read_ = 0;
  std::unique_ptr<const ValueFile> file_;
  std::map<std::string, ZipMember> members_;
};

}  // namespace aifs::zarr
