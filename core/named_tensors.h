// SPDX-License-Identifier: Apache-2.0
// Tensors of a file by name, whatever its format is: what readers of weights and graphs ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

size_t dtype_bytes(DType dtype);
// The name in the header of a safetensors file: "F32".
const char* dtype_name(DType dtype);

struct TensorEntry {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // C order; valid as long as what it was taken from lives

  int64_t num_elements() const;
};

class NamedTensors {
 public:
  // `path` is for messages. The bytes of added tensors must outlive the object.
  explicit NamedTensors(fs::path path) : path_(std::move(path)) {}

  // Puts a tensor behind the others, or in the place of one of its name.
  void add(const std::string& name, TensorEntry entry);

  const fs::path& path() const { return path_; }
  // In the order of the file.
  const std::vector<std::string>& names() const { return names_; }
  // All tensors, by name.
  const std::map<std::string, TensorEntry>& entries() const { return entries_; }
  bool contains(const std::string& name) const { return entries_.count(name) != 0; }
  // Throws DataError naming the file and near names if there is no such tensor.
  const TensorEntry& at(const std::string& name) const;
  // The values as double, whatever the stored type is.
  std::vector<double> doubles(const std::string& name) const;
  // The values as int64; floating-point tensors are refused.
  std::vector<int64_t> integers(const std::string& name) const;

 private:
  fs::path path_;
  std::vector<std::string> names_;
  std::map<std::string, TensorEntry> entries_;
};

}  // namespace aifs
