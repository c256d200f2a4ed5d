// SPDX-License-Identifier: Apache-2.0
#include "tests/support/zarr_writer.h"

#include <blosc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "core/check.h"
#include "core/time.h"

namespace aifs::test {

namespace {

template <class T>
std::string raw(T value, bool big_endian) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  if (big_endian) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

// binary16 of a number that has one.
uint16_t half_bits(double value) {
  if (std::isnan(value)) return 0x7e00;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (size == 0) return sign;
  int exponent;
  const double fraction = std::frexp(size, &exponent);  // [0.5, 1)
  const auto mantissa = static_cast<int>(std::lround(fraction * 2048)) - 1024;
  return static_cast<uint16_t>(sign | ((exponent + 14) << 10) | mantissa);
}

std::string json_list(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers)
    text += concat(text.empty() ? "" : ", ", number);
  return "[" + text + "]";
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& element : texts)
    text += concat(text.empty() ? "" : ", ", '"', element, '"');
  return "[" + text + "]";
}

std::string array_json(const ArraySpec& spec) {
  const std::string compressor = spec.compressor == "null"
                                     ? "null"
                                     : concat(R"({"id": "blosc", "cname": ")", spec.inner_codec,
                                              R"(", "clevel": 5, "shuffle": )", spec.shuffle,
                                              R"(, "blocksize": )", spec.block_bytes, "}");
  return concat(R"({"zarr_format": 2, "shape": )", json_list(spec.shape), R"(, "chunks": )",
                json_list(spec.chunks), R"(, "dtype": ")", spec.dtype, R"(", "order": ")",
                spec.order, R"(", "filters": null, "fill_value": )", spec.fill_value,
                R"(, "dimension_separator": ")", spec.separator, R"(", "compressor": )", compressor,
                "}");
}

// Counts up, the last position fastest; false after the last.
bool next(std::vector<int64_t>& index, const std::vector<int64_t>& lengths) {
  for (size_t axis = lengths.size(); axis-- > 0;) {
    if (++index[axis] < lengths[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

std::string chunk_bytes(const ArraySpec& spec, const std::vector<int64_t>& chunk,
                        const ItemValue& value) {
  const size_t rank = spec.shape.size();
  std::vector<int64_t> lengths = spec.chunks;
  if (spec.order == 'F') std::reverse(lengths.begin(), lengths.end());
  std::vector<int64_t> inside(rank, 0);
  std::string bytes;
  do {
    std::vector<int64_t> index(rank);
    bool in_array = true;
    for (size_t axis = 0; axis < rank; ++axis) {
      index[axis] =
          chunk[axis] * spec.chunks[axis] + inside[spec.order == 'F' ? rank - 1 - axis : axis];
      in_array = in_array && index[axis] < spec.shape[axis];
    }
    bytes += encode_item(spec.dtype, in_array ? value(index) : 77.0);
  } while (next(inside, lengths));
  return bytes;
}

void write_one_dimensional(zarr::MemoryStore& store, const std::string& path,
                           const std::string& dtype, int64_t length, int64_t chunk,
                           const std::function<double(int64_t)>& value) {
  const ArraySpec spec{.shape = {length}, .chunks = {chunk}, .dtype = dtype, .fill_value = "0"};
  write_array(store, path, spec, [&](const auto& index) { return value(index[0]); });
}

}  // namespace

std::string encode_item(const std::string& dtype, double value) {
  const bool big = dtype[0] == '>';
  const std::string type = dtype.substr(1, dtype.find('[') - 1);
  if (type == "f2") return raw(half_bits(value), big);
  if (type == "f4") return raw(static_cast<float>(value), big);
  if (type == "f8") return raw(value, big);
  if (type == "b1" || type == "u1") return raw(static_cast<uint8_t>(value), big);
  if (type == "i1") return raw(static_cast<int8_t>(value), big);
  if (type == "i2") return raw(static_cast<int16_t>(value), big);
  if (type == "u2") return raw(static_cast<uint16_t>(value), big);
  if (type == "i4") return raw(static_cast<int32_t>(value), big);
  if (type == "u4") return raw(static_cast<uint32_t>(value), big);
  if (type == "u8") return raw(static_cast<uint64_t>(value), big);
  AIFS_CHECK(type == "i8" || type == "M8" || type == "m8", dtype);
  return raw(static_cast<int64_t>(value), big);
}

std::string blosc_encode(const std::string& bytes, size_t type_bytes,
                         const std::string& inner_codec, int shuffle, size_t block_bytes,
                         int threads) {
  std::string encoded(bytes.size() + BLOSC_MAX_OVERHEAD, '\0');
  const int size =
      blosc_compress_ctx(5, shuffle, type_bytes, bytes.size(), bytes.data(), encoded.data(),
                         encoded.size(), inner_codec.c_str(), block_bytes, threads);
  AIFS_CHECK(size > 0, "blosc_compress_ctx gives ", size, " for ", inner_codec);
  encoded.resize(static_cast<size_t>(size));
  return encoded;
}

void write_array(zarr::MemoryStore& store, const std::string& path, const ArraySpec& spec,
                 const ItemValue& value) {
  store.put(path + "/.zarray", array_json(spec));
  const size_t rank = spec.shape.size();
  std::vector<int64_t> counts(rank), chunk(rank, 0);
  for (size_t axis = 0; axis < rank; ++axis)
    counts[axis] = (spec.shape[axis] + spec.chunks[axis] - 1) / spec.chunks[axis];
  do {
    std::string name, dotted;
    for (const int64_t index : chunk) {
      name += concat(name.empty() ? "" : std::string(1, spec.separator), index);
      dotted += concat(dotted.empty() ? "" : ".", index);
    }
    if (std::find(spec.absent.begin(), spec.absent.end(), dotted) != spec.absent.end()) continue;
    std::string bytes = chunk_bytes(spec, chunk, value);
    if (spec.compressor == "blosc") {
      const size_t item_bytes = encode_item(spec.dtype, 0.0).size();
      bytes = blosc_encode(bytes, item_bytes, spec.inner_codec, spec.shuffle, spec.block_bytes);
    }
    store.put(concat(path, "/", name.empty() ? "0" : name), bytes);
  } while (next(chunk, counts));
}

float position_value(const AnemoiSpec& spec, int64_t date, int64_t variable, int64_t member,
                     int64_t cell) {
  const auto num_variables = static_cast<int64_t>(spec.variables.size());
  return static_cast<float>(
      ((date * num_variables + variable) * spec.num_members + member) * spec.num_cells + cell);
}

double latitude_deg(int64_t cell) {
  return 90.0 - 0.001 * static_cast<double>(cell % 1000);
}

double longitude_deg(int64_t cell) {
  return 0.002 * static_cast<double>(cell % 1000);
}

double statistic_value(int64_t variable, int64_t k) {
  return 100.0 * static_cast<double>(k + 1) + 1.0 / 3.0 + static_cast<double>(variable);
}

double tendency_value(int64_t variable, int64_t k, int64_t tendency) {
  return statistic_value(variable, k) + 1000.0 * static_cast<double>(tendency + 1);
}

std::shared_ptr<zarr::MemoryStore> write_anemoi(const AnemoiSpec& spec) {
  auto store = std::make_shared<zarr::MemoryStore>("memory");
  const auto num_variables = static_cast<int64_t>(spec.variables.size());
  ArraySpec data{.shape = {spec.num_dates, num_variables, spec.num_members, spec.num_cells},
                 .chunks = spec.chunks,
                 .dtype = spec.dtype,
                 .compressor = spec.compressor,
                 .order = spec.order,
                 .inner_codec = spec.inner_codec,
                 .block_bytes = spec.block_bytes};
  if (data.chunks.empty()) data.chunks = {1, num_variables, 1, spec.num_cells};
  std::vector<std::string> missing_dates;
  for (const int64_t row : spec.missing) {
    missing_dates.push_back(format_date(spec.first_date_s + row * spec.step_s));
    for (int64_t e = 0; e < spec.num_members; ++e)
      data.absent.push_back(concat(row, ".0.", e, ".0"));
  }
  store->put(".zgroup", R"({"zarr_format": 2})");
  store->put(".zattrs",
             concat(R"({"variables": )", json_list(spec.variables), R"(, "frequency": ")",
                    spec.frequency, R"(", "missing_dates": )", json_list(missing_dates),
                    R"(, "field_shape": [)", spec.num_cells, R"(], "resolution": null})"));
  write_array(*store, "data", data, [&](const std::vector<int64_t>& i) {
    return double{position_value(spec, i[0], i[1], i[2], i[3])};
  });
  write_one_dimensional(*store, "dates", "<M8[s]", spec.num_dates, 4, [&](int64_t i) {
    return static_cast<double>(spec.first_date_s + i * spec.step_s);
  });
  const int64_t num_cells = spec.num_cells;
  write_one_dimensional(*store, "latitudes", "<f8", num_cells, num_cells / 3 + 1, latitude_deg);
  write_one_dimensional(*store, "longitudes", "<f8", num_cells, num_cells / 2 + 1, longitude_deg);
  const char* names[] = {"mean", "stdev", "minimum", "maximum"};
  for (int64_t k = 0; k < 4; ++k) {
    write_one_dimensional(*store, names[k], "<f8", num_variables, num_variables,
                          [k](int64_t v) { return statistic_value(v, k); });
    for (size_t t = 0; t < spec.tendencies.size(); ++t) {
      write_one_dimensional(
          *store, concat("statistics_tendencies_", spec.tendencies[t], "_", names[k]), "<f8",
          num_variables, num_variables,
          [k, t](int64_t v) { return tendency_value(v, k, static_cast<int64_t>(t)); });
    }
  }
  return store;
}

void write_to_folder(const zarr::MemoryStore& store, const std::filesystem::path& folder) {
  for (const auto& [key, value] : store.values()) {
    const std::filesystem::path path = folder / key;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << value;
  }
}

void edit(zarr::MemoryStore& store, const std::string& key, const std::string& from,
          const std::string& to) {
  const auto found = store.values().find(key);
  AIFS_CHECK(found != store.values().end(), key);
  std::string text = found->second;
  const size_t at = text.find(from);
  AIFS_CHECK(at != std::string::npos, "'", from, "' is not in ", key);
  store.put(key, text.replace(at, from.size(), to));
}

}  // namespace aifs::test
