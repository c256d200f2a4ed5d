// SPDX-License-Identifier: Apache-2.0
#include "core/named_tensors.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "core/product.h"

namespace aifs {

namespace {

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
bool convert_integers(const TensorEntry& entry, std::vector<Out>& out) {
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

}  // namespace

size_t dtype_bytes(DType dtype) {
  return type_row(dtype).bytes;
}
const char* dtype_name(DType dtype) {
  return type_row(dtype).name;
}

int64_t TensorEntry::num_elements() const {
  return product(shape);
}

void NamedTensors::add(const std::string& name, TensorEntry entry) {
  if (entries_.insert_or_assign(name, std::move(entry)).second) names_.push_back(name);
}

const TensorEntry& NamedTensors::at(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, entry] : entries_)
    names.push_back(known);
  throw DataError(concat("'", path().string(), "' has no tensor '", name, "'"),
                  nearest_names(name, names));
}

std::vector<double> NamedTensors::doubles(const std::string& name) const {
  const TensorEntry& entry = at(name);
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

std::vector<int64_t> NamedTensors::integers(const std::string& name) const {
  const TensorEntry& entry = at(name);
  std::vector<int64_t> out(static_cast<size_t>(entry.num_elements()));
  if (!convert_integers(entry, out)) {
    throw DataError(concat("'", path().string(), "': tensor '", name, "' has type ",
                           dtype_name(entry.dtype), ", integers were expected"));
  }
  return out;
}

}  // namespace aifs
