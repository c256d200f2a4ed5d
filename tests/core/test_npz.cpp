// SPDX-License-Identifier: Apache-2.0
// The files are scipy.sparse.save_npz of the matrix of a ring of four nodes, 0.5 at both
// neighbours: csr and csc deflated, coo stored and in float64, dia.
#include "core/npz.h"

#include <zlib.h>

#include <map>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

fs::path file(const std::string& name) {
  return test::fixture("npz/" + name);
}

// A copy with one byte changed, or cut to `size` bytes.
fs::path spoilt(const test::TemporaryFolder& folder, size_t byte, size_t size = std::string::npos) {
  std::string content = read_file(file("ring_coo.npz"));
  content[byte] = static_cast<char>(content[byte] ^ 1);
  write_file_atomic(folder.path() / "spoilt.npz", content.substr(0, size));
  return folder.path() / "spoilt.npz";
}

void append(std::string& bytes, uint64_t value, int width) {
  for (int i = 0; i < width; ++i)
    bytes += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
}

// Describes what a zip archive says of its one member, where it may differ from what it holds.
struct Claims {
  uint16_t method = 0;  // stored
  uint32_t checksum_error = 0, more_bytes = 0, begin = 0;
};

// A zip archive with `content` as a.npy.
fs::path zip(const test::TemporaryFolder& folder, const std::string& content, Claims claims = {}) {
  const std::string name = "a.npy";
  std::string bytes, entry;
  append(bytes, 0x04034b50, 26);
  append(bytes, name.size(), 4);
  bytes += name + content;
  append(entry, 0x02014b50, 10);
  append(entry, claims.method, 6);
  const uLong checksum =
      ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  append(entry, checksum ^ claims.checksum_error, 4);
  for (int i = 0; i < 2; ++i)  // packed and unpacked
    append(entry, content.size() + claims.more_bytes, 4);
  append(entry, name.size(), 14);
  append(entry, claims.begin, 4);
  const size_t directory = bytes.size();
  bytes += entry + name;
  append(bytes, 0x06054b50, 10);
  append(bytes, 1, 2);
  append(bytes, entry.size() + name.size(), 4);
  append(bytes, directory, 6);
  const fs::path path = folder.path() / "hostile.npz";
  write_file_atomic(path, bytes);
  return path;
}

// A NumPy array with this header and so many bytes of content.
std::string npy(const std::string& header, size_t size = 32) {
  std::string bytes = "\x93NUMPY\x01";
  append(bytes, header.size() << 8, 3);
  return bytes + header + std::string(size, '\0');
}

std::string header(const std::string& type, const std::string& shape) {
  return "{'descr': " + type + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
}

}  // namespace

TEST_CASE("matrices of scipy are read in three formats", "[npz]") {
  for (const char* name : {"ring_csr.npz", "ring_csc.npz", "ring_coo.npz"}) {
    INFO(name);
    const SparseEntries m = read_sparse_npz(file(name), 4, 4);
    std::map<std::pair<int64_t, int64_t>, float> values;
    for (size_t e = 0; e < m.value.size(); ++e)
      values[{m.row[e], m.column[e]}] += m.value[e];
    REQUIRE(values.size() == 8);
    for (int64_t i = 0; i < 4; ++i) {
      REQUIRE(values.at({i, (i + 1) % 4}) == 0.5f);
      REQUIRE(values.at({i, (i + 3) % 4}) == 0.5f);
    }
  }
  const SparseEntries down = read_sparse_npz(file("down_2x5.npz"));
  REQUIRE(down.num_rows == 2);
  REQUIRE(down.num_columns == 5);
  REQUIRE(down.row == std::vector<int64_t>{0, 0, 0, 1, 1});
  REQUIRE(down.column == std::vector<int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a matrix that is not the one wanted is refused", "[npz]") {
  REQUIRE_THROWS_WITH(read_sparse_npz(file("ring_dia.npz")),
                      ContainsSubstring("ring_dia.npz") && ContainsSubstring("'dia'"));
  REQUIRE_THROWS_WITH(read_sparse_npz(file("ring_csr.npz"), 4, 5),
                      ContainsSubstring("4 x 4 where 4 x 5"));
}

TEST_CASE("a file of another kind than npz is called by its kind", "[npz]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "m.npz", "1 0\n0 1\n");
  REQUIRE_THROWS_WITH(read_sparse_npz(folder.path() / "m.npz"),
                      ContainsSubstring("m.npz' is text, a .npz file was expected"));
}

TEST_CASE("arrays are named in errors", "[npz]") {
  const NpzFile npz(file("ring_csr.npz"));
  REQUIRE(npz.integers("shape") == std::vector<int64_t>{4, 4});
  REQUIRE(npz.text("format") == "csr");
  REQUIRE_THROWS_WITH(npz.numbers("row"),
                      ContainsSubstring("array 'row' of '") && ContainsSubstring("is not there"));
  REQUIRE_THROWS_WITH(npz.numbers("indices"), ContainsSubstring("type <i4, not <f4 or <f8"));
  REQUIRE_THROWS_WITH(npz.integers("data"), ContainsSubstring("type <f4"));
}

TEST_CASE("damaged archives are refused", "[npz]") {
  const test::TemporaryFolder folder;
  const size_t size = read_file(file("ring_coo.npz")).size();
  REQUIRE_THROWS_WITH(NpzFile(spoilt(folder, 0, size - 30)), ContainsSubstring("no zip archive"));
  REQUIRE_THROWS_AS(read_sparse_npz(folder.path() / "missing.npz"), DataError);
  // Whatever bit is lost: an error that says what, or a byte that says nothing about the matrix.
  int refused = 0;
  for (size_t byte = 0; byte < size; ++byte) {
    try {
      const SparseEntries m = read_sparse_npz(spoilt(folder, byte), 4, 4);
      REQUIRE(m.value == std::vector<float>(8, 0.5f));
      REQUIRE(m.row.size() == 8);
    } catch (const DataError&) {
      ++refused;
    }
  }
  REQUIRE(refused > static_cast<int>(size) / 2);
}

TEST_CASE("hostile arrays are refused with the names of file and array", "[npz]") {
  const test::TemporaryFolder folder;
  REQUIRE(NpzFile(zip(folder, npy(header("'<f8'", "(4,)")))).numbers("a").size() == 4);
  const std::string fortran = "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }\n";
  for (const auto& [content, what] : std::vector<std::pair<std::string, std::string>>{
           {npy(header("'<f2'", "(16,)")), "has type <f2, not <f4 or <f8"},
           {npy(header("'>f8'", "(4,)")), "has type >f8, not"},
           {npy(header("'<U4'", "(8,)")), "has type <U4, not"},
           {npy(header("'|O'", "(4,)"), 0), "has type |O, not"},
           {npy(header("[('x', '<f8')]", "(4,)")), "has a header that cannot be read"},
           {npy(fortran), "is in Fortran order"},
           {npy(header("'<f8'", "(-4,)")), "has a header that cannot be read"},
           {npy(header("'<f8'", "(5,)")), "has 32 bytes, its shape needs 40"},
           {npy(header("'<f8'", "(100000000000000000,)")), "has 32 bytes, its shape needs 8000"},
           {npy(header("'<f8'", "(4294967296, 4294967296)")), "has an impossible shape"},
           {npy(header("'<f8'", "(99999999999999999999,)")), "has an impossible shape"},
           {npy(header("'<f999999999'", "(4294967296, 8)")), "has an impossible shape"},
           {npy("", 0), "has a header that cannot be read"},
           {npy(header("'<f8'", "(" + std::string(60000, ' ') + "4,)")),
            "has a header that cannot"},
           {npy(header(std::string(60000, ' ') + "'<f8'", "(4,)")), "has a header that cannot"},
           {npy(header("'<f8'", "(4,)")).substr(0, 30), "is cut short"},
           {"\x93NUMPY\x02", "is cut short"},
           {"PK no array", "is no NumPy array"},
           {"", "is cut short"}}) {
    INFO(what);
    REQUIRE_THROWS_WITH(NpzFile(zip(folder, content)).numbers("a"),
                        ContainsSubstring("array 'a' of '") && ContainsSubstring("hostile.npz") &&
                            ContainsSubstring(what));
  }
}

TEST_CASE("archives that lie about their members are refused", "[npz]") {
  const test::TemporaryFolder folder;
  const std::string good = npy(header("'<f8'", "(4,)"));
  constexpr uint32_t kIn64Bits = 0xffffffff;
  for (const auto& [claims, what] : std::vector<std::pair<Claims, std::string>>{
           {{.checksum_error = 1}, "its checksum is wrong"},
           {{.more_bytes = 1U << 30}, "is cut short"},
           {{.begin = 1U << 30}, "is cut short"},
           {{.begin = 1}, "has no member where it should be"},
           {{.begin = kIn64Bits}, "is larger than 4 GiB"},
           {{.method = 8}, "does not unpack"},
           {{.method = 8, .more_bytes = 1U << 31}, "is cut short"},
           {{.method = 12}, "zip method 12"}}) {
    INFO(what);
    REQUIRE_THROWS_WITH(NpzFile(zip(folder, good, claims)).numbers("a"),
                        ContainsSubstring("array 'a' of '") && ContainsSubstring("hostile.npz") &&
                            ContainsSubstring(what));
  }
  REQUIRE_THROWS_WITH(NpzFile(zip(folder, good)).numbers("b"),
                      ContainsSubstring("array 'b' of '") && ContainsSubstring("is not there"));
}
