// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes little-endian length of the header, a JSON header, raw tensors in
// C order (https://github.com/huggingface/safetensors, "Format"). Reading maps the file and checks
// every number in the header before any byte is used; a damaged file is a DataError that says
// where.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

size_t dtype_bytes(DType dtype);
// The name in the header of a file: "F32".
const char* dtype_name(DType dtype);

struct SafetensorsEntry {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // C order; valid as long as the file object lives

  int64_t num_elements() const;
};

class SafetensorsFile {
 public:
  // Throws DataError if the file is missing, truncated or inconsistent.
  explicit SafetensorsFile(const fs::path& path);

  const fs::path& path() const { return file_.path(); }
  // In the order of the header.
  const std::vector<std::string>& names() const { return names_; }
  // All tensors, by name.
  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  bool contains(const std::string& name) const { return entries_.count(name) != 0; }
  // Throws DataError naming the file and near names if there is no such tensor.
  const SafetensorsEntry& at(const std::string& name) const;
  // The values as double, whatever the stored type is.
  std::vector<double> doubles(const std::string& name) const;
  // The values as int64; floating-point tensors are refused.
  std::vector<int64_t> integers(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::vector<std::string> names_;
  std::map<std::string, SafetensorsEntry> entries_;
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
