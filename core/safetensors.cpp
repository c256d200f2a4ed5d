// SPDX-License-Identifier: Apache-2.0
#include "core/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_kind.h"
#include "core/json_read.h"
#include "core/product.h"

namespace aifs {

namespace {

using Json = nlohmann::ordered_json;

struct TypeRow {
  DType dtype;
  const char* name;
  size_t bytes;
};
constexpr std::array<TypeRow, 10> kTypes{{{DType::kF64, "F64", 8},
                                          {DType::kF32, "F32", 4},
                                          {DType::kF16, "F16", 2},
                                          {DType::kBF16, "BF16", 2},
                                          {DType::kI64, "I64", 8},
                                          {DType::kI32, "I32", 4},
                                          {DType::kI16, "I16", 2},
                                          {DType::kI8, "I8", 1},
                                          {DType::kU8, "U8", 1},
                                          {DType::kBool, "BOOL", 1}}};

const TypeRow& type_row(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row;
  }
  throw Error("unknown data type");
}

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
  for (const TypeRow& row : kTypes) {
    if (type_name == row.name) {
      entry.dtype = row.dtype;
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

float half_to_float(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31) return mantissa ? std::nanf("") : sign * INFINITY;
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

template <class Stored, class Out, class Convert>
void convert(std::span<const std::byte> bytes, std::vector<Out>& out, Convert&& to_out) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = to_out(value);
  }
}

// False for an entry of another type than an integer's.
template <class Out>
bool convert_integers(const SafetensorsEntry& entry, std::vector<Out>& out) {
  const auto plain = [](auto value) { return static_cast<Out>(value); };
  switch (entry.dtype) {
    case DType::kI64:
      convert<int64_t>(entry.bytes, out, plain);
      return true;
    case DType::kI32:
      convert<int32_t>(entry.bytes, out, plain);
      return true;
    case DType::kI16:
      convert<int16_t>(entry.bytes, out, plain);
      return true;
    case DType::kI8:
      convert<int8_t>(entry.bytes, out, plain);
      return true;
    case DType::kU8:
    case DType::kBool:
      convert<uint8_t>(entry.bytes, out, plain);
      return true;
    default:
      return false;
  }
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

size_t dtype_bytes(DType dtype) {
  return type_row(dtype).bytes;
}
const char* dtype_name(DType dtype) {
  return type_row(dtype).name;
}

int64_t SafetensorsEntry::num_elements() const {
  return product(shape);
}

SafetensorsFile::SafetensorsFile(const fs::path& path) : file_(path) {
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
      entries_[name] = parse_entry(value, name, path, payload);
      names_.push_back(name);
    }
  }
}

const SafetensorsEntry& SafetensorsFile::at(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, entry] : entries_)
    names.push_back(known);
  throw DataError(concat("'", path().string(), "' has no tensor '", name, "'"),
                  nearest_names(name, names));
}

std::vector<double> SafetensorsFile::doubles(const std::string& name) const {
  const SafetensorsEntry& entry = at(name);
  std::vector<double> out(static_cast<size_t>(entry.num_elements()));
  const auto plain = [](auto value) { return static_cast<double>(value); };
  switch (entry.dtype) {
    case DType::kF64:
      convert<double>(entry.bytes, out, plain);
      break;
    case DType::kF32:
      convert<float>(entry.bytes, out, plain);
      break;
    case DType::kF16:
      convert<uint16_t>(entry.bytes, out, [](uint16_t bits) { return half_to_float(bits); });
      break;
    case DType::kBF16:
      convert<uint16_t>(entry.bytes, out, [](uint16_t bits) {
        return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
      });
      break;
    default:
      convert_integers(entry, out);
  }
  return out;
}

std::vector<int64_t> SafetensorsFile::integers(const std::string& name) const {
  const SafetensorsEntry& entry = at(name);
  std::vector<int64_t> out(static_cast<size_t>(entry.num_elements()));
  if (!convert_integers(entry, out)) {
    throw DataError(concat("'", path().string(), "': tensor '", name, "' has type ",
                           dtype_name(entry.dtype), ", integers were expected"));
  }
  return out;
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
