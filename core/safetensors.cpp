// SPDX-License-Identifier: Apache-2.0
#include "core/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_kind.h"
#include "core/json_read.h"
#include "core/product.h"

namespace aifs {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kAllTypes{DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                               DType::kI32, DType::kI16, DType::kI8,  DType::kU8,   DType::kBool};

constexpr size_t kLengthBytes = 8;

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  const std::string kind = describe_kind_of_file(path);
  if (!kind.empty() && kind != "a safetensors file" && kind != "a file of another kind") {
    throw DataError(concat("'", path.string(), "' is ", kind, ", a safetensors file was expected"));
  }
  throw DataError(concat("'", path.string(), "' is not a sound safetensors file: ", what),
                  "the file is damaged or was not written completely");
}

Json parse_header(std::string_view text, const fs::path& path) {
  Json header;
  try {
    header = parse_json_file(text, "header");
  } catch (const DataError& error) {
    damaged(path, error.what());
  }
  if (!header.is_object()) {
    damaged(path, concat("the header must be an object, not ", json_kind(header)));
  }
  return header;
}

SafetensorsEntry parse_entry(const Json& json, const std::string& name, const fs::path& path,
                             std::span<const std::byte> payload) {
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
      !json.contains("shape") || !json["shape"].is_array() || !json.contains("data_offsets") ||
      !json["data_offsets"].is_array() || json["data_offsets"].size() != 2) {
    damaged(path, concat("the header of tensor '", name, "' is incomplete"));
  }
  SafetensorsEntry entry;
  const auto type_name = json["dtype"].get<std::string>();
  bool known = false;
  for (const DType dtype : kAllTypes) {
    if (type_name == dtype_name(dtype)) {
      entry.dtype = dtype;
      known = true;
    }
  }
  if (!known) damaged(path, concat("tensor '", name, "' has the unknown type '", type_name, "'"));
  uint64_t elements = 1;
  for (const Json& extent : json["shape"]) {
    if (!extent.is_number_unsigned()) damaged(path, concat("bad shape of tensor '", name, "'"));
    const auto size = extent.get<uint64_t>();
    if (size > payload.size() + 1 && elements != 0) {
      damaged(path, concat("tensor '", name, "' is larger than the file"));
    }
    elements *= size;
    if (elements > payload.size())
      damaged(path, concat("tensor '", name, "' is larger than the file"));
    entry.shape.push_back(static_cast<int64_t>(size));
  }
  for (const Json& offset : json["data_offsets"]) {
    if (!offset.is_number_unsigned()) damaged(path, concat("bad offsets of tensor '", name, "'"));
  }
  const auto begin = json["data_offsets"][0].get<uint64_t>();
  const auto end = json["data_offsets"][1].get<uint64_t>();
  if (begin > end || end > payload.size()) {
    damaged(path, concat("tensor '", name, "' ends at byte ", end, " of ", payload.size()));
  }
  if (end - begin != elements * dtype_bytes(entry.dtype)) {
    damaged(path, concat("tensor '", name, "' has ", end - begin, " bytes, its shape needs ",
                         elements * dtype_bytes(entry.dtype)));
  }
  entry.bytes = payload.subspan(begin, end - begin);
  return entry;
}

// Writes to a file, hashing on the way.
class HashingWriter {
 public:
  explicit HashingWriter(const fs::path& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("create");
  }
  ~HashingWriter() {
    if (fd_ >= 0) ::close(fd_);
  }
  HashingWriter(const HashingWriter&) = delete;
  HashingWriter& operator=(const HashingWriter&) = delete;

  void write(const void* data, size_t bytes) {
    hash_.update(data, bytes);
    const auto* next = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(fd_, next, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write");
      next += written;
      bytes -= static_cast<size_t>(written);
    }
  }

  std::string finish() {
    flush_file(fd_, path_);
    if (::close(std::exchange(fd_, -1)) != 0) fail("close");
    return hash_.finish();
  }

 private:
  [[noreturn]] void fail(const char* verb) {
    throw Error(concat("cannot ", verb, " '", path_.string(), "': ", system_error_text()),
                "is the disk full or the quota used up?");
  }
  fs::path path_;
  int fd_ = -1;
  Sha256 hash_;
};

}  // namespace

SafetensorsFile::SafetensorsFile(const fs::path& path) : NamedTensors(path), file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < kLengthBytes) damaged(path, concat("only ", bytes.size(), " bytes long"));
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > bytes.size() - kLengthBytes) {
    damaged(path,
            concat("the header should have ", header_bytes, " bytes, the file has ", bytes.size()));
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + kLengthBytes);
  const Json header = parse_header({text, header_bytes}, path);
  const std::span<const std::byte> payload = bytes.subspan(kLengthBytes + header_bytes);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) damaged(path, "__metadata__ is not an object");
      for (const auto& [key, text_value] : value.items()) {
        if (!text_value.is_string()) {
          damaged(path,
                  concat("__metadata__.", key, " must be a text, not ", json_kind(text_value)));
        }
        metadata_[key] = text_value.get<std::string>();
      }
    } else {
      add(name, parse_entry(value, name, path, payload));
    }
  }
}

std::string write_safetensors(const fs::path& path, const std::vector<SafetensorsItem>& items,
                              const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::vector<const SafetensorsItem*> by_width;
  for (const SafetensorsItem& item : items) {
    AIFS_CHECK(!header.contains(item.name), "two tensors are called '", item.name, "'");
    header[item.name] = Json{{"dtype", dtype_name(item.dtype)}, {"shape", item.shape}};
    by_width.push_back(&item);
  }
  std::stable_sort(by_width.begin(), by_width.end(), [](const auto* a, const auto* b) {
    return dtype_bytes(a->dtype) > dtype_bytes(b->dtype);
  });
  const auto bytes_of = [](const SafetensorsItem& item) {
    return static_cast<size_t>(product(item.shape)) * dtype_bytes(item.dtype);
  };
  uint64_t offset = 0;
  for (const SafetensorsItem* item : by_width) {
    header[item->name]["data_offsets"] = Json::array({offset, offset + bytes_of(*item)});
    offset += bytes_of(*item);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors start at a multiple of 8
  const uint64_t header_bytes = text.size();

  const fs::path temporary = temporary_name(path);
  try {
    HashingWriter writer(temporary);
    writer.write(&header_bytes, kLengthBytes);
    writer.write(text.data(), text.size());
    for (const SafetensorsItem* item : by_width)
      writer.write(item->data, bytes_of(*item));
    std::string digest = writer.finish();
    replace_file(temporary, path);
    return digest;
  } catch (const Error&) {
    ::unlink(temporary.c_str());  // half a file would only take space
    throw;
  }
}

}  // namespace aifs
