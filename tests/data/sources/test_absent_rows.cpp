// SPDX-License-Identifier: Apache-2.0
// Oracle: every chunk is asked for, one by one.
#include "data/sources/absent_rows.h"

#include <algorithm>
#include <numeric>

#include "core/rng.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;

namespace {

using Rows = std::vector<int64_t>;

constexpr int64_t kRows = 7, kVariables = 5, kMembers = 2, kCells = 9;

Rows up_to(int64_t count) {
  Rows numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Rows brute_force(const zarr::Array& data, const Rows& variables) {
  Rows absent;
  for (int64_t row = 0; row < kRows; ++row) {
    bool lacks = false;
    for (const int64_t variable : variables) {
      data.grid().for_each_part({{row, variable, 0, 0}, {row + 1, variable + 1, kMembers, kCells}},
                                [&](const zarr::ChunkPart& part) {
                                  zarr::ChunkScratch scratch;
                                  lacks |= !data.decode_chunk(part.chunk, {}, scratch).items;
                                });
    }
    if (lacks) absent.push_back(row);
  }
  return absent;
}

std::shared_ptr<zarr::MemoryStore> write(const std::vector<int64_t>& chunks, char separator) {
  auto store = std::make_shared<zarr::MemoryStore>("memory");
  test::write_array(
      *store, "data",
      {.shape = {kRows, kVariables, kMembers, kCells}, .chunks = chunks, .separator = separator},
      [](const auto&) { return 1.0; });
  return store;
}

Rows absent_rows(const zarr::Array& data, const Rows& rows, const Rows& variables) {
  const auto found = find_absent_rows(data, rows, variables);
  REQUIRE(found);
  REQUIRE(found->is_exact);
  return found->rows;
}

DatasetInfo info_of(const Statistics& statistics) {
  DatasetInfo info;
  info.variables = {"2t", "sp", "q", "u"};
  info.dates_s = {0, 21600, 43200, 64800, 86400};
  info.statistics = statistics;
  return info;
}

}  // namespace

TEST_CASE("rows that lack a chunk of a variable are found from one list", "[absent_rows]") {
  const CounterRng rng(3);
  uint64_t draw = 0;
  for (const std::vector<int64_t>& chunks :
       std::vector<std::vector<int64_t>>{{1, 5, 1, 9}, {1, 2, 2, 4}, {3, 5, 1, 9}, {2, 1, 2, 3}}) {
    for (int trial = 0; trial < 20; ++trial) {
      const auto store = write(chunks, trial % 2 == 0 ? '.' : '/');
      const auto values = store->values();
      for (const auto& [key, value] : values) {
        if (!key.ends_with(".zarray") && rng.bits(draw++) % 20 == 0) store->erase(key);
      }
      store->put("data/7.0.0.0", "beyond the array");
      store->put("data/0.0.0", "of another rank");
      store->put("data/0.0.0.0.tmp", "somebody else's");
      const zarr::Array data(store, "data");
      for (const Rows& variables : {Rows{0}, Rows{4}, Rows{1, 3}, up_to(5)}) {
        REQUIRE(absent_rows(data, up_to(kRows), variables) == brute_force(data, variables));
      }
    }
  }
}

TEST_CASE("rows without a stored row are not looked for", "[absent_rows]") {
  const auto store = write({1, 5, 2, 9}, '.');
  store->erase("data/2.0.0.0");
  store->erase("data/5.0.0.0");
  const zarr::Array data(store, "data");
  REQUIRE(absent_rows(data, Rows{6, -1, 5, 2, 0}, up_to(5)) == Rows{2, 3});
}

TEST_CASE("where chunks lie in folders, rows without any are found, on disk too", "[absent_rows]") {
  const auto store = write({1, 5, 1, 9}, '/');
  store->erase("data/3/0/0/0");
  store->erase("data/3/0/1/0");
  REQUIRE(absent_rows(zarr::Array(store, "data"), up_to(kRows), up_to(5)) == Rows{3});
  const test::TemporaryFolder folder;
  test::write_to_folder(*store, folder.path());
  const auto files = std::make_shared<zarr::DirectoryStore>(folder.path().string());
  REQUIRE(absent_rows(zarr::Array(files, "data"), up_to(kRows), up_to(5)) == Rows{3});
}

TEST_CASE("a store that cannot be listed gives nothing", "[absent_rows]") {
  class Unlisted : public zarr::MemoryStore {
   public:
    explicit Unlisted(const zarr::MemoryStore& other) : MemoryStore(other) {}
    std::optional<std::vector<std::string>> names_below(const std::string&) const override {
      return std::nullopt;
    }
  };
  const zarr::Array data(std::make_shared<Unlisted>(*write({1, 5, 1, 9}, '.')), "data");
  REQUIRE_FALSE(find_absent_rows(data, up_to(kRows), up_to(5)).has_value());
}

TEST_CASE("a fill value far outside what was stored is told by variable", "[absent_rows]") {
  zarr::ArrayMeta meta;
  meta.file = "x.zarr/data/.zarray";
  const DatasetInfo info = info_of({{}, {}, {200, 50000, 0, -60}, {320, 105000, 0.02, 80}});
  const Rows rows{0, 1, 2, 4};
  meta.fill.real = 0.0;
  const std::string text = describe_absent_rows(meta, info, rows);
  REQUIRE_THAT(text, ContainsSubstring("fill_value 0 of 'x.zarr/data/.zarray': 4 of 5 "
                                       "(1970-01-01T00:00:00, 1970-01-01T06:00:00, "
                                       "1970-01-01T12:00:00, ...)"));
  REQUIRE_THAT(text, ContainsSubstring("maximum of 2t, sp: are chunks lost?"));
  meta.fill.real = 300.0;
  REQUIRE_THAT(describe_absent_rows(meta, info, rows), ContainsSubstring("of sp, q, u:"));
  meta.fill.real = std::numeric_limits<double>::quiet_NaN();
  REQUIRE_THAT(describe_absent_rows(meta, info, rows),
               ContainsSubstring("data.imputer") && !ContainsSubstring("far outside"));
  // A little beyond the stored extremes is weather.
  meta.fill.real = 0.0;
  REQUIRE_THAT(describe_absent_rows(meta, info_of({{}, {}, {5, 1, 0, 0}, {50, 50, 1, 1}}), rows),
               !ContainsSubstring("far outside"));
}
