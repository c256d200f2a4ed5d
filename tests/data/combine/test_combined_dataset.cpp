// SPDX-License-Identifier: Apache-2.0
// Oracle: every value of the stores says where it belongs.
#include "data/combine/combined_dataset.h"

#include <algorithm>
#include <numeric>

#include "core/rng.h"
#include "data/combine/dataset_views.h"
#include "data/fields/field_kernels.h"
#include "tests/support/catch.h"
#include "tests/support/open_test_dataset.h"

using namespace aifs;
using namespace aifs::data;
using test::AnemoiSpec;

namespace {

// Says where each thing of a view comes from in the store.
struct Origin {
  std::vector<int64_t> rows, columns, members, cells;
  std::vector<AffineMap> maps;
};

std::vector<int64_t> up_to(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

std::vector<int64_t> some_of(int64_t count, Pcg64& rng, bool ascending) {
  std::vector<int64_t> some = rng.permutation(count);
  some.resize(1 + rng.next_bounded(static_cast<uint32_t>(count - 1)));
  if (ascending) std::sort(some.begin(), some.end());
  return some;
}

template <class T>
std::vector<T> pick(const std::vector<T>& values, const std::vector<int64_t>& indices) {
  std::vector<T> picked;
  for (const int64_t index : indices)
    picked.push_back(values[static_cast<size_t>(index)]);
  return picked;
}

// One random view more around a dataset.
DatasetPtr viewed(const DatasetPtr& dataset, Origin& origin, Pcg64& rng) {
  const DatasetInfo& info = dataset->info();
  switch (rng.next_bounded(4)) {
    case 0: {
      const int64_t step = info.num_rows() > 3 ? 1 + rng.next_bounded(1) : 1;
      std::vector<int64_t> rows;
      for (int64_t row = info.num_rows() > 2 ? rng.next_bounded(1) : 0; row < info.num_rows();
           row += step)
        rows.push_back(row);
      origin.rows = pick(origin.rows, rows);
      return with_rows(dataset, rows);
    }
    case 1: {
      if (info.num_variables() < 2) return dataset;
      const std::vector<int64_t> columns = some_of(info.num_variables(), rng, false);
      origin.columns = pick(origin.columns, columns);
      origin.maps = pick(origin.maps, columns);
      return with_columns(dataset, columns);
    }
    case 2: {
      if (info.ensemble_size < 2) return dataset;
      const std::vector<int64_t> members = some_of(info.ensemble_size, rng, true);
      origin.members = pick(origin.members, members);
      return with_members(dataset, members);
    }
    case 3: {
      if (info.num_nodes() < 2) return dataset;
      const std::vector<int64_t> cells = some_of(info.num_nodes(), rng, true);
      origin.cells = pick(origin.cells, cells);
      return with_cells(dataset, cells);
    }
    default: {  // powers of two and integers: exact
      std::vector<UnitMap> maps;
      for (AffineMap& map : origin.maps) {
        maps.push_back({rng.next_bounded(1) == 0 ? 1.0 : 0.5, double{1.0} * rng.next_bounded(2)});
        map.mul *= static_cast<float>(maps.back().a);
        map.add = static_cast<float>(map.add * maps.back().a + maps.back().b);
      }
      return with_maps(dataset, maps);
    }
  }
}

// The value that a view must give.
float expected_value(const AnemoiSpec& spec, const Origin& origin, int64_t row, size_t v, size_t e,
                     int64_t n) {
  const AffineMap& map = origin.maps[v];
  return test::position_value(spec, origin.rows[static_cast<size_t>(row)], origin.columns[v],
                              origin.members[e], origin.cells[static_cast<size_t>(n)]) *
             map.mul +
         map.add;
}

}  // namespace

TEST_CASE("views of views give the values of the places that they name", "[combined_dataset]") {
  Pcg64 rng(3);
  AnemoiSpec spec{.num_dates = 9, .num_members = 3, .num_cells = 40};
  for (const std::vector<int64_t>& chunks :
       std::vector<std::vector<int64_t>>{{}, {2, 2, 1, 7}, {1, 5, 3, 40}}) {
    spec.chunks = chunks;
    const test::Stores stores{{"a", test::write_anemoi(spec)}};
    for (int trial = 0; trial < 40; ++trial) {
      DatasetPtr dataset = test::open(stores, "\"a\"");
      Origin origin{up_to(9), up_to(5), up_to(3), up_to(40), std::vector<AffineMap>(5)};
      for (uint32_t depth = 1 + rng.next_bounded(5); depth > 0; --depth)
        dataset = viewed(dataset, origin, rng);
      const DatasetInfo& info = dataset->info();
      REQUIRE(info.num_rows() == static_cast<int64_t>(origin.rows.size()));
      const int64_t row = rng.next_bounded(static_cast<uint32_t>(info.num_rows() - 1));
      const int64_t begin = rng.next_bounded(static_cast<uint32_t>(info.num_nodes() - 1));
      const int64_t count =
          1 + rng.next_bounded(static_cast<uint32_t>(info.num_nodes() - begin - 1));
      const auto width = static_cast<size_t>(info.num_variables());
      std::vector<float> values(static_cast<size_t>(info.ensemble_size * count) * width, -1.0f);
      dataset->read(row, {begin, begin + count}, values);
      std::vector<float> expected;
      for (size_t e = 0; e < origin.members.size(); ++e) {
        for (int64_t n = begin; n < begin + count; ++n) {
          for (size_t v = 0; v < width; ++v)
            expected.push_back(expected_value(spec, origin, row, v, e, n));
        }
      }
      REQUIRE(values == expected);
      REQUIRE(info.latitudes_deg.back() == test::latitude_deg(origin.cells.back()));
    }
  }
}

TEST_CASE("single columns of a view are read alone, and come as the columns that are asked for",
          "[combined_dataset]") {
  const AnemoiSpec spec{.num_dates = 2};
  const auto store = test::write_anemoi(spec);
  const test::Stores stores{{"a", store}};
  const DatasetPtr dataset = with_columns(test::open(stores, "\"a\""), {4, 0, 2});
  std::vector<float> values(2 * 5);
  ReadScratch scratch;
  const std::vector<int64_t> wanted{2, 0};
  read_fields(*dataset, 1, {3, 8}, wanted, scratch, values.data());
  for (int64_t n = 0; n < 5; ++n) {
    REQUIRE(values[static_cast<size_t>(n)] == test::position_value(spec, 1, 2, 0, 3 + n));
    REQUIRE(values[static_cast<size_t>(5 + n)] == test::position_value(spec, 1, 4, 0, 3 + n));
  }
}

TEST_CASE("a missing row cannot be read, and its dataset and date are named",
          "[combined_dataset]") {
  const test::Stores stores{{"a", test::write_anemoi({.num_dates = 6, .missing = {3}})}};
  const DatasetPtr dataset = with_rows(test::open(stores, "\"a\""), {1, 3, 5});
  REQUIRE(dataset->info().missing_rows == std::vector<int64_t>{1});
  REQUIRE_THROWS_WITH(test::row_of(*dataset, 1),
                      ContainsSubstring("2020-01-01T18:00:00") && ContainsSubstring("missing"));
  REQUIRE_NOTHROW(test::row_of(*dataset, 2));
}

TEST_CASE("warnings are about rows that are used", "[combined_dataset]") {
  const auto store = test::write_anemoi({.num_dates = 6});
  store->erase("data/2.0.0.0");
  const test::Stores stores{{"a", store}};
  const DatasetPtr all = test::open(stores, "\"a\"");
  REQUIRE(all->warnings().size() == 1);
  REQUIRE(with_rows(all, {0, 2, 4})->warnings().size() == 1);
  REQUIRE(with_rows(all, {1, 3, 5})->warnings().empty());
  REQUIRE_THAT(with_rows(all, {0, 2, 4})->remark(1), ContainsSubstring("data/2.0.0.0"));
}

TEST_CASE("attributes follow selections and names", "[combined_dataset]") {
  const auto store = test::write_anemoi({});
  test::edit(*store, ".zattrs", "\"resolution\": null",
             R"("resolution": "o96", "variables_metadata": {"2t": {"units": "K"}, "tp": {}})");
  const test::Stores stores{{"a", store}};
  const auto attributes =
      test::open(stores, R"({"dataset": "a", "select": ["2t"], "rename": {"2t": "t"},
                             "area": [90, 0, 89.995, 1]})")
          ->attributes();
  REQUIRE(attributes["variables_metadata"].dump() == R"({"t":{"units":"K"}})");
  REQUIRE(attributes["field_shape"].dump() == "[6]");
}
