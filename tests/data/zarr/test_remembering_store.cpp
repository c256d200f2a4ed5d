// SPDX-License-Identifier: Apache-2.0
// Opening a dataset from what another has read of it: no file but chunks of "data" is touched.
#include "data/zarr/remembering_store.h"

#include "core/check.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;

namespace {

// Refuses all keys but those of the fields and, while a dataset is opened, all but chunks of them.
class ChunksOnly : public zarr::Store {
 public:
  explicit ChunksOnly(std::shared_ptr<const zarr::Store> inner) : inner_(std::move(inner)) {}
  bool opening = false;
  const std::string& name() const override { return inner_->name(); }
  bool get(const std::string& key, size_t max_bytes, zarr::Buffer& out) const override {
    return allowed(key).get(key, max_bytes, out);
  }
  bool get_range(const std::string& key, size_t offset, size_t length,
                 zarr::Buffer& out) const override {
    return allowed(key).get_range(key, offset, length, out);
  }
  std::optional<size_t> size(const std::string& key) const override {
    return allowed(key).size(key);
  }
  std::vector<std::string> root_names() const override { throw Error("a folder was listed"); }

 private:
  const zarr::Store& allowed(const std::string& key) const {
    if (!key.starts_with("data/") || (opening && key.starts_with("data/.z")))
      throw Error("'" + key + "' was read");
    return *inner_;
  }
  std::shared_ptr<const zarr::Store> inner_;
};

}  // namespace

TEST_CASE("a dataset opens from a record as it does from its files", "[zarr]") {
  const test::AnemoiSpec spec;
  const std::shared_ptr<const zarr::Store> files = test::write_anemoi(spec);
  const auto remembering = std::make_shared<zarr::RememberingStore>(files);
  const data::AnemoiDataset first(remembering, {.end = "2020-01-01T06:00:00"});
  const data::AnemoiDataset second(remembering, {.start = "2020-01-01T12:00:00"});
  remembering->stop();
  const std::string record = remembering->record();

  const auto chunks = std::make_shared<ChunksOnly>(files);
  REQUIRE_THROWS_AS(data::AnemoiDataset(chunks, {}), Error);
  const auto recalled = std::make_shared<zarr::RememberingStore>(chunks, record);
  chunks->opening = true;
  for (const char* start : {"", "2020-01-01T12:00:00"}) {
    const data::AnemoiDataset expected(files, {.start = start}), got(recalled, {.start = start});
    REQUIRE(got.info().dates_s == expected.info().dates_s);
    REQUIRE(got.info().variables == expected.info().variables);
    REQUIRE(got.info().latitudes_deg == expected.info().latitudes_deg);
    REQUIRE(got.info().statistics.stdev == expected.info().statistics.stdev);
    std::vector<float> wanted(60), values(60);
    for (int64_t row = 0; row < expected.info().num_rows(); ++row) {
      expected.read(row, {0, 12}, wanted);
      got.read(row, {0, 12}, values);
      REQUIRE(values == wanted);
    }
  }
}

TEST_CASE("a record is that of one dataset", "[zarr]") {
  const auto files = test::write_anemoi({});
  const auto remembering = std::make_shared<zarr::RememberingStore>(files);
  const data::AnemoiDataset opened(remembering, {});
  const std::string record = remembering->record();
  const auto others = test::write_anemoi({.num_cells = 13});
  const auto none = std::make_shared<zarr::MemoryStore>("elsewhere");
  REQUIRE_NOTHROW(zarr::RememberingStore(files, record));
  REQUIRE_THROWS_AS(zarr::RememberingStore(others, record), DataError);
  REQUIRE_THROWS_AS(zarr::RememberingStore(none, record), DataError);
}

TEST_CASE("absent keys are remembered, chunks read later are not", "[zarr]") {
  const auto files = std::make_shared<zarr::MemoryStore>("memory");
  files->put("a", "first");
  zarr::RememberingStore store(files);
  zarr::Buffer out;
  REQUIRE(store.get("a", 100, out));
  REQUIRE_FALSE(store.size("b"));
  store.stop();
  files->put("a", "changed");
  files->put("b", "new");
  files->put("c", "later");
  REQUIRE(store.size("a") == 5);
  REQUIRE_FALSE(store.size("b"));
  REQUIRE(store.size("c") == 5);
  files->erase("c");
  REQUIRE_FALSE(store.size("c"));
  REQUIRE_THROWS_AS(store.get("a", 4, out), DataError);
  REQUIRE_THROWS_AS(zarr::RememberingStore(files, "no record"), DataError);
}
