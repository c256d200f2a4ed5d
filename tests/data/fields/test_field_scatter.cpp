// SPDX-License-Identifier: Apache-2.0
#include "data/fields/field_scatter.h"

#include <vector>

#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

struct Layout {
  int64_t num_fields, num_cells;
  bool cells_fastest;
};

// Scatters fields whose values say field and cell; checks every value of the output.
void check(const Layout& layout, const std::vector<ColumnMap>& columns, int64_t width) {
  const int64_t field_stride = layout.cells_fastest ? layout.num_cells : 1;
  const int64_t cell_stride = layout.cells_fastest ? 1 : layout.num_fields;
  std::vector<float> values(static_cast<size_t>(layout.num_fields * layout.num_cells));
  for (int64_t f = 0; f < layout.num_fields; ++f) {
    for (int64_t n = 0; n < layout.num_cells; ++n) {
      values[static_cast<size_t>(f * field_stride + n * cell_stride)] =
          static_cast<float>(f * layout.num_cells + n);
    }
  }
  std::vector<float> out(static_cast<size_t>(width * layout.num_cells), -1.0F), expected = out;
  for (const ColumnMap& map : columns) {
    for (int64_t n = 0; n < layout.num_cells; ++n) {
      expected[static_cast<size_t>(n * width + map.column)] =
          static_cast<float>(map.source * layout.num_cells + n);
    }
  }
  scatter_fields({values.data(), field_stride, cell_stride, layout.num_cells}, columns, out.data(),
                 width);
  REQUIRE(out == expected);
}

}  // namespace

TEST_CASE("all fields in order are a transposed matrix", "[field_scatter]") {
  for (const int64_t num_fields : {1, 3, 4, 5, 8, 33}) {
    for (const int64_t num_cells : {0, 1, 3, 4, 127, 128, 129, 300}) {
      for (const bool cells_fastest : {true, false}) {
        std::vector<ColumnMap> columns;
        for (int64_t f = 0; f < num_fields; ++f)
          columns.push_back({f, f});
        check({num_fields, num_cells, cells_fastest}, columns, num_fields);
      }
    }
  }
}

TEST_CASE("any choice of fields in any order reaches its columns and nothing else",
          "[field_scatter]") {
  Pcg64 rng(11);
  for (int trial = 0; trial < 100; ++trial) {
    const int64_t num_fields = 1 + rng.next_bounded(20), width = num_fields + rng.next_bounded(3);
    const auto sources = rng.permutation(num_fields), targets = rng.permutation(width);
    std::vector<ColumnMap> columns;
    const auto count = static_cast<size_t>(rng.next_bounded(static_cast<uint32_t>(num_fields)));
    for (size_t k = 0; k < count; ++k)
      columns.push_back({sources[k], targets[k]});
    check({num_fields, 1 + rng.next_bounded(200), trial % 2 == 0}, columns, width);
  }
}
