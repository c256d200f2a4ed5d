// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes little-endian length of the header, a JSON header, raw tensors in
// C order (https://github.com/huggingface/safetensors, "Format"). Reading maps the file and checks
// every number in the header before any byte is used; a damaged file is a DataError that says
// where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "core/named_tensors.h"

namespace aifs {

using SafetensorsEntry = TensorEntry;

class SafetensorsFile : public NamedTensors {
 public:
  // Throws DataError if the file is missing, truncated or inconsistent. The names are in the order
  // of the header.
  explicit SafetensorsFile(const fs::path& path);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to be written: contiguous bytes in C order, which must live until the write returns.
struct SafetensorsItem {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;
};

// Writes beside `path` and renames; returns the SHA-256 of the file. The header keeps the order of
// the items; their bytes are sorted by the width of the type, so that all are aligned, as readers
// in Python demand.
std::string write_safetensors(const fs::path& path, const std::vector<SafetensorsItem>& items,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace aifs
