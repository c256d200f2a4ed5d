// SPDX-License-Identifier: Apache-2.0
// A file of torch.save(): a zip archive of a pickle (data.pkl), of the bytes of tensors
// (data/<key>) and, where Anemoi wrote it, of metadata. Objects stay the records of core/pickle.h;
// only tensors are understood.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/named_tensors.h"
#include "core/pickle.h"
#include "core/zip_archive.h"

namespace aifs::anemoi {

class TorchArchive {
 public:
  // Throws DataError naming the file and what is wrong with it.
  explicit TorchArchive(const fs::path& path);
  TorchArchive(const TorchArchive&) = delete;
  TorchArchive& operator=(const TorchArchive&) = delete;

  const fs::path& path() const { return zip_.path(); }
  PickleValue root() const { return pickle_->root(); }

  // True for a tensor, or a parameter of a module. Throws DataError for tensors that are not read:
  // sparse, quantised and others.
  bool is_tensor(const PickleValue& value) const;
  // The tensor; `name` is for messages. Its bytes are those of the file, or a copy where they do
  // not lie in a row there, and valid as long as the archive lives. Throws DataError.
  TensorEntry tensor(const PickleValue& value, const std::string& name);

  // What Anemoi's programs know of the model (anemoi.json, ai-models.json), if it is there.
  std::optional<nlohmann::ordered_json> metadata() const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  std::span<const std::byte> storage(const PickleValue& key);
  std::span<const std::byte> gathered(const TensorEntry& entry, const std::vector<int64_t>& strides,
                                      std::span<const std::byte> from);

  ZipArchive zip_;
  std::string root_;  // folder of all members
  std::unique_ptr<PickleTree> pickle_;
  std::map<std::string, std::span<const std::byte>, std::less<>> storages_;  // that were checked
  std::deque<std::vector<std::byte>> copies_;
  uint64_t copied_ = 0;
};

}  // namespace aifs::anemoi
