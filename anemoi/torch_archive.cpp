// SPDX-License-Identifier: Apache-2.0
#include "anemoi/torch_archive.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "core/json_read.h"

namespace aifs::anemoi {

namespace {

constexpr const char* kPickle = "/data.pkl";
constexpr const char* kMetadataNames[] = {"anemoi.json", "ai-models.json"};
constexpr uint64_t kMostPickle = uint64_t{256} << 20, kMostJson = uint64_t{64} << 20;
constexpr size_t kMostDimensions = 16;

constexpr const char* kTensor = "torch._utils._rebuild_tensor_v2";
constexpr const char* kTypedTensor = "torch._utils._rebuild_tensor_v3";
constexpr const char* kParameter = "torch._utils._rebuild_parameter";
constexpr const char* kParameterWithState = "torch._utils._rebuild_parameter_with_state";

struct StorageType {
  const char* storage;  // class of the storage
  const char* dtype;    // as an untyped storage has it
  DType type;
};
constexpr std::array<StorageType, 10> kStorageTypes{
    {{"torch.DoubleStorage", "torch.float64", DType::kF64},
     {"torch.FloatStorage", "torch.float32", DType::kF32},
     {"torch.HalfStorage", "torch.float16", DType::kF16},
     {"torch.BFloat16Storage", "torch.bfloat16", DType::kBF16},
     {"torch.LongStorage", "torch.int64", DType::kI64},
     {"torch.IntStorage", "torch.int32", DType::kI32},
     {"torch.ShortStorage", "torch.int16", DType::kI16},
     {"torch.CharStorage", "torch.int8", DType::kI8},
     {"torch.ByteStorage", "torch.uint8", DType::kU8},
     {"torch.BoolStorage", "torch.bool", DType::kBool}}};

std::optional<DType> type_of(const std::string& name) {
  for (const StorageType& row : kStorageTypes) {
    if (name == row.storage || name == row.dtype) return row.type;
  }
  return std::nullopt;
}

std::vector<int64_t> integers_of(const PickleValue& saved) {
  const bool is_size = saved.is(PickleKind::kObject) && saved.class_name() == "torch.Size";
  const PickleValue list = is_size ? saved.arguments()[0] : saved;
  std::vector<int64_t> values;
  for (size_t i = 0; i < list.size(); ++i)
    values.push_back(list[i].integer());
  return values;
}

bool is_contiguous(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

// Python writes what JSON has no words for; outside of texts it becomes null.
std::string without_nan(const std::string& text) {
  std::string json;
  bool in_text = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (text[at] == '"') in_text = !in_text;
    if (in_text && text[at] == '\\' && rest.size() > 1) json += text[at++];
    size_t word = 0;
    for (const std::string_view name : {"NaN", "-Infinity", "Infinity"}) {
      if (!in_text && word == 0 && rest.starts_with(name)) word = name.size();
    }
    if (word == 0) {
      json += text[at];
    } else {
      json += "null";
      at += word - 1;
    }
  }
  return json;
}

// The part of a tensor's arguments that places it in its storage.
struct Layout {
  uint64_t begin = 0, end = 0;  // elements of the storage that it may touch
  uint64_t count = 0;           // of its own
};

// Nothing if any number is negative or too large for a storage of `available` elements.
std::optional<Layout> layout_of(const std::vector<int64_t>& shape,
                                const std::vector<int64_t>& strides, int64_t offset,
                                uint64_t available) {
  if (shape.size() != strides.size() || shape.size() > kMostDimensions || offset < 0)
    return std::nullopt;
  Layout layout{.begin = static_cast<uint64_t>(offset), .count = 1};
  uint64_t last = layout.begin;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || strides[i] < 0) return std::nullopt;
    const auto size = static_cast<uint64_t>(shape[i]), stride = static_cast<uint64_t>(strides[i]);
    if (__builtin_mul_overflow(layout.count, size, &layout.count) ||
        layout.count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return std::nullopt;
    uint64_t reach = 0;
    if (size > 0 && (__builtin_mul_overflow(size - 1, stride, &reach) ||
                     __builtin_add_overflow(last, reach, &last)))
      return std::nullopt;
  }
  layout.end = layout.count == 0 ? layout.begin : last + 1;
  if (layout.begin > available || (layout.count > 0 && last >= available)) return std::nullopt;
  return layout;
}

}  // namespace

TorchArchive::TorchArchive(const fs::path& path) : zip_(path) {
  for (const auto& [name, member] : zip_.members()) {
    if (!name.ends_with(kPickle) || name.find('/') != name.size() - std::strlen(kPickle)) continue;
    if (!root_.empty()) fail("holds two models");
    root_ = name.substr(0, name.size() - std::strlen(kPickle));
  }
  if (root_.empty()) fail("has no member data.pkl: it was not written by torch.save()");
  const std::string order = root_ + "/byteorder";
  if (zip_.contains(order) && zip_.read(order, 16) != "little")
    fail("was written by a big-endian machine");
  const std::span<const std::byte> bytes = zip_.stored(root_ + kPickle);
  if (bytes.size() > kMostPickle) fail(concat("has a pickle of ", bytes.size(), " bytes"));
  pickle_ = std::make_unique<PickleTree>(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      concat("'", path.string(), "': ", root_, kPickle));
}

void TorchArchive::fail(const std::string& what) const {
  throw DataError(concat("'", path().string(), "' ", what));
}

bool TorchArchive::is_tensor(const PickleValue& value) const {
  if (!value.is(PickleKind::kObject)) return false;
  const std::string name = value.class_name();
  for (const char* known : {kTensor, kTypedTensor, kParameter, kParameterWithState}) {
    if (name == known) return true;
  }
  if (!name.starts_with("torch._utils._rebuild_") && !name.starts_with("torch._tensor."))
    return false;
  fail(concat("has a tensor that is stored by ", name, ": dense ones of torch itself are read"));
}

std::span<const std::byte> TorchArchive::storage(const PickleValue& key) {
  const std::string name(key.text());
  const auto found = storages_.find(name);
  if (found != storages_.end()) return found->second;
  const std::span<const std::byte> bytes = zip_.stored(concat(root_, "/data/", name));
  storages_.emplace(name, bytes);
  return bytes;
}

std::span<const std::byte> TorchArchive::gathered(const TensorEntry& entry,
                                                  const std::vector<int64_t>& strides,
                                                  std::span<const std::byte> from) {
  const size_t width = dtype_bytes(entry.dtype);
  const auto count = static_cast<size_t>(entry.num_elements());
  // Strides of 0 make large tensors of small storages.
  const uint64_t most = (uint64_t{64} << 20) + 2 * zip_.size();
  if (count > (most - copied_) / width) fail("has tensors that are larger than the file");
  copied_ += count * width;
  std::vector<std::byte>& copy = copies_.emplace_back(count * width);
  std::vector<int64_t> index(entry.shape.size());
  int64_t place = 0;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(copy.data() + i * width, from.data() + static_cast<size_t>(place) * width, width);
    for (size_t d = index.size(); d-- > 0;) {
      if (index[d] + 1 < entry.shape[d]) {
        ++index[d];
        place += strides[d];
        break;
      }
      place -= strides[d] * index[d];
      index[d] = 0;
    }
  }
  return copy;
}

TensorEntry TorchArchive::tensor(const PickleValue& value, const std::string& name) {
  const auto refuse = [&](const std::string& what) { fail(concat("has '", name, "' ", what)); };
  if (!is_tensor(value)) refuse(concat("as ", value.describe(), ", and not as a tensor"));
  const std::string maker = value.class_name();
  const PickleValue arguments = value.arguments();
  if (maker == kParameter || maker == kParameterWithState) {
    const PickleValue inner = arguments[0];
    if (!is_tensor(inner) || inner.class_name() == kParameter ||
        inner.class_name() == kParameterWithState)
      refuse(concat("as a parameter of ", inner.describe()));
    return tensor(inner, name);
  }
  // ("storage", class, key, device, number of elements)
  const PickleValue id = arguments[0].stored_id();
  const std::string storage_class = id[1].class_name();
  const std::string kind = maker == kTypedTensor ? arguments[6].class_name() : storage_class;
  const std::optional<DType> dtype = type_of(kind);
  if (!dtype) refuse(concat("of type ", kind, ", which is not read"));
  const std::span<const std::byte> bytes = storage(id[2]);
  const size_t width = dtype_bytes(*dtype);
  const bool is_untyped = !type_of(storage_class).has_value();
  const int64_t stated = id[4].integer();
  if (stated < 0 || static_cast<uint64_t>(stated) != bytes.size() / (is_untyped ? 1 : width))
    refuse(concat("in ", bytes.size(), " bytes, where ", stated, " elements should be"));
  TensorEntry entry{*dtype, integers_of(arguments[2]), {}};
  const std::vector<int64_t> strides = integers_of(arguments[3]);
  const std::optional<Layout> layout =
      layout_of(entry.shape, strides, arguments[1].integer(), bytes.size() / width);
  if (!layout) refuse("of a shape that its storage has no room for");
  const std::span<const std::byte> part =
      bytes.subspan(layout->begin * width, (layout->end - layout->begin) * width);
  entry.bytes = layout->count == 0                    ? part.first(0)
                : is_contiguous(entry.shape, strides) ? part
                                                      : gathered(entry, strides, part);
  return entry;
}

std::optional<nlohmann::ordered_json> TorchArchive::metadata() const {
  for (const char* document : kMetadataNames) {
    for (const auto& [name, member] : zip_.members()) {
      if (name.substr(name.rfind('/') + 1) != document) continue;
      return parse_json_file(without_nan(zip_.read(name, kMostJson)),
                             concat(path().string(), ": ", name));
    }
  }
  return std::nullopt;
}

}  // namespace aifs::anemoi
