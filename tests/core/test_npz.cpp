// SPDX-License-Identifier: Apache-2.0
// The files are scipy.sparse.save_npz of the matrix of a ring of four nodes, 0.5 at both
// neighbours: csr and csc deflated, coo stored and in float64, dia.
#include "core/npz.h"

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
