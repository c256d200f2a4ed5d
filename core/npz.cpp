// SPDX-License-Identifier: Apache-2.0
#include "core/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <regex>

#include "core/check.h"
#include "core/file_kind.h"

namespace aifs {

namespace {

using Bytes = std::span<const std::byte>;

// Records of a zip archive: fixed part, then names and extras of given lengths.
constexpr uint32_t kEndRecord = 0x06054b50, kEntryRecord = 0x02014b50, kLocalRecord = 0x04034b50;
constexpr size_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30, kMostComment = 65535;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint32_t kIn64Bits = 0xffffffff;
constexpr std::string_view kNpyMagic = "\x93NUMPY";

class Reader {
 public:
  Reader(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(where_ + " " + what, "write the file again");
  }
  Bytes part(size_t begin, size_t size) const {
    if (begin > bytes_.size() || size > bytes_.size() - begin) fail("is cut short");
    return bytes_.subspan(begin, size);
  }
  template <class T>  // little-endian, as the machines this runs on
  T number(size_t at) const {
    T value;
    std::memcpy(&value, part(at, sizeof value).data(), sizeof value);
    return value;
  }
  std::string text(size_t at, size_t size) const {
    return {reinterpret_cast<const char*>(part(at, size).data()), size};
  }
  size_t size() const { return bytes_.size(); }

 private:
  Bytes bytes_;
  std::string where_;
};

// Returns where the list of members begins, and how many there are.
std::pair<size_t, size_t> directory(const Reader& file) {
  for (size_t back = kEndSize; back <= std::min(file.size(), kEndSize + kMostComment); ++back) {
    const size_t at = file.size() - back;
    if (file.number<uint32_t>(at) != kEndRecord) continue;
    const auto begin = file.number<uint32_t>(at + 16);
    if (begin == kIn64Bits) file.fail("is larger than 4 GiB, which is not supported");
    return {begin, file.number<uint16_t>(at + 10)};
  }
  file.fail("is no zip archive");
}

std::vector<std::byte> inflated(const Reader& file, Bytes packed, size_t size) {
  constexpr size_t kMostRatio = 1032;  // of deflate
  if (size / kMostRatio > packed.size() + 1) file.fail("is damaged: it does not unpack");
  std::vector<std::byte> bytes(size);
  z_stream stream{};
  AIFS_CHECK(::inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib refuses to start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(size);
  const bool whole = ::inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == size;
  ::inflateEnd(&stream);
  if (!whole) file.fail("is damaged: it does not unpack");
  return bytes;
}

// The content of one member, unpacked and checked.
std::vector<std::byte> member(const Reader& file, const std::string& name) {
  auto [at, left] = directory(file);
  for (; left > 0; --left) {
    if (file.number<uint32_t>(at) != kEntryRecord) file.fail("has a damaged list of members");
    const auto method = file.number<uint16_t>(at + 10);
    const auto checksum = file.number<uint32_t>(at + 16),
               packed_size = file.number<uint32_t>(at + 20), size = file.number<uint32_t>(at + 24),
               begin = file.number<uint32_t>(at + 42);
    const size_t name_size = file.number<uint16_t>(at + 28);
    const bool wanted = file.text(at + kEntrySize, name_size) == name;
    at += kEntrySize + name_size + file.number<uint16_t>(at + 30) + file.number<uint16_t>(at + 32);
    if (!wanted) continue;
    if (std::max({packed_size, size, begin}) == kIn64Bits) {
      file.fail("is larger than 4 GiB, which is not supported");
    }
    if (file.number<uint32_t>(begin) != kLocalRecord) file.fail("has no member where it should be");
    const Bytes packed = file.part(
        begin + kLocalSize + file.number<uint16_t>(begin + 26) + file.number<uint16_t>(begin + 28),
        packed_size);
    if (method != kStored && method != kDeflated) {
      file.fail(concat("is packed in a way that is not supported (zip method ", method, ")"));
    }
    std::vector<std::byte> bytes = method == kDeflated
                                       ? inflated(file, packed, size)
                                       : std::vector<std::byte>(packed.begin(), packed.end());
    const auto found = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    if (found != checksum) file.fail("is damaged: its checksum is wrong");
    return bytes;
  }
  file.fail("is not there");
}

template <class From, class To>
std::vector<To> converted(Bytes bytes) {
  std::vector<To> values(bytes.size() / sizeof(From));
  for (size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    values[i] = static_cast<To>(value);
  }
  return values;
}

}  // namespace

struct NpzFile::Array {
  Reader reader;                 // for errors
  std::vector<std::byte> bytes;  // of the elements
  std::string type;              // as NumPy writes it: <f4

  [[noreturn]] void fail_type(const char* wanted) const {
    reader.fail(concat("has type ", type, ", not ", wanted));
  }
};

NpzFile::NpzFile(const fs::path& path) : file_(path) {
  const std::string kind = describe_kind_of_file(path);
  if (kind.find("zip") == std::string::npos && kind != "a file of another kind" && !kind.empty()) {
    throw DataError(concat("'", path.string(), "' is ", kind, ", a .npz file was expected"),
                    "numpy.savez and scipy.sparse.save_npz write such files");
  }
  directory({file_.bytes(), concat("'", path.string(), "'")});
}

NpzFile::Array NpzFile::read(const std::string& array) const {
  const std::string where = concat("array '", array, "' of '", file_.path().string(), "'");
  Array result{{file_.bytes(), where}, member({file_.bytes(), where}, array + ".npy"), {}};
  const Reader npy(result.bytes, where);
  if (npy.text(0, kNpyMagic.size()) != kNpyMagic) npy.fail("is no NumPy array");
  const bool long_header = npy.number<uint8_t>(6) > 1;
  const size_t begin = long_header ? 12 : 10;
  const size_t size = long_header ? npy.number<uint32_t>(8) : npy.number<uint16_t>(8);
  constexpr size_t kMostHeader = 4096;  // std::regex recurses once per character
  if (size > kMostHeader) npy.fail("has a header that cannot be read");
  const std::string header = npy.text(begin, size);
  if (header.find("'fortran_order': True") != std::string::npos)
    npy.fail("is in Fortran order, which is not supported");
  static const std::regex type("'descr': *'([<>|=]?[A-Za-z][0-9]{0,9})'"),
      shape("'shape': *\\(([0-9, ]*)\\)"), number("[0-9]{1,18}");
  std::smatch found_type, found_shape;
  if (!std::regex_search(header, found_type, type) ||
      !std::regex_search(header, found_shape, shape)) {
    npy.fail("has a header that cannot be read");
  }
  result.type = found_type[1];
  const auto product = [&](size_t a, size_t b) {
    if (b > 0 && a > std::numeric_limits<size_t>::max() / b) npy.fail("has an impossible shape");
    return a * b;
  };
  size_t bytes = std::stoul("0" + result.type.substr(std::min<size_t>(2, result.type.size())));
  const std::string sizes = found_shape[1];
  for (std::sregex_iterator it(sizes.begin(), sizes.end(), number), end; it != end; ++it)
    bytes = product(bytes, std::stoul(it->str()));
  if (npy.size() - begin - size != bytes) {
    npy.fail(concat("has ", npy.size() - begin - size, " bytes, its shape needs ", bytes));
  }
  result.bytes.erase(result.bytes.begin(),
                     result.bytes.begin() + static_cast<ptrdiff_t>(begin + size));
  return result;
}

std::vector<double> NpzFile::numbers(const std::string& array) const {
  const Array values = read(array);
  if (values.type == "<f4") return converted<float, double>(values.bytes);
  if (values.type == "<f8") return converted<double, double>(values.bytes);
  values.fail_type("<f4 or <f8");
}

std::vector<int64_t> NpzFile::integers(const std::string& array) const {
  const Array values = read(array);
  if (values.type == "<i4") return converted<int32_t, int64_t>(values.bytes);
  if (values.type == "<i8") return converted<int64_t, int64_t>(values.bytes);
  values.fail_type("<i4 or <i8");
}

std::string NpzFile::text(const std::string& array) const {
  const Array values = read(array);
  if (!values.type.starts_with("|S")) values.fail_type("a byte string");
  return {reinterpret_cast<const char*>(values.bytes.data()), values.bytes.size()};
}

SparseEntries read_sparse_npz(const fs::path& path, int64_t num_rows, int64_t num_columns) {
  const NpzFile file(path);
  const auto fail = [&](const std::string& what) {
    throw DataError(concat("'", path.string(), "': ", what),
                    "a matrix is written by scipy.sparse.save_npz");
  };
  SparseEntries entries;
  const std::vector<int64_t> shape = file.integers("shape");
  if (shape.size() != 2) fail(concat("a matrix of ", shape.size(), " dimensions"));
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::min(shape[0], shape[1]) < 0 || std::max(shape[0], shape[1]) > kMost)
    fail(concat("a matrix of ", shape[0], " x ", shape[1]));
  const auto fits = [](int64_t size, int64_t wanted) { return wanted < 0 || size == wanted; };
  if (!fits(shape[0], num_rows) || !fits(shape[1], num_columns)) {
    const auto wanted = [](int64_t size) { return size < 0 ? std::string("any") : concat(size); };
    fail(concat("a matrix of ", shape[0], " x ", shape[1], " where ", wanted(num_rows), " x ",
                wanted(num_columns), " is needed"));
  }
  entries.num_rows = shape[0];
  entries.num_columns = shape[1];
  for (const double value : file.numbers("data"))
    entries.value.push_back(static_cast<float>(value));
  const std::string format = file.text("format");
  if (format == "coo") {
    entries.row = file.integers("row");
    entries.column = file.integers("col");
  } else if (format == "csr" || format == "csc") {
    const std::vector<int64_t> begin = file.integers("indptr");
    const size_t count = entries.value.size();
    std::vector<int64_t>& major = format == "csr" ? entries.row : entries.column;
    (format == "csr" ? entries.column : entries.row) = file.integers("indices");
    if (static_cast<int64_t>(begin.size()) != shape[format == "csr" ? 0 : 1] + 1 || begin[0] != 0 ||
        begin.back() != static_cast<int64_t>(count) ||
        !std::is_sorted(begin.begin(), begin.end())) {
      fail("'indptr' does not fit the matrix");
    }
    for (size_t i = 0; i + 1 < begin.size(); ++i)
      major.insert(major.end(), static_cast<size_t>(begin[i + 1] - begin[i]),
                   static_cast<int64_t>(i));
  } else {
    fail(concat("sparse format '", format, "', of which csr, csc and coo are supported"));
  }
  const auto within = [&](const std::vector<int64_t>& index, int64_t size) {
    return index.size() == entries.value.size() &&
           std::all_of(index.begin(), index.end(), [&](int64_t i) { return i >= 0 && i < size; });
  };
  if (!within(entries.row, entries.num_rows) || !within(entries.column, entries.num_columns)) {
    fail("indices that are outside the matrix, or not one for every value");
  }
  return entries;
}

}  // namespace aifs
