// SPDX-License-Identifier: Apache-2.0
// The loader's reading on the CPU says what rows are.
#include "data/loader/row_decoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "core/check.h"
#include "data/loader/data_loader.h"
#include "tests/support/catch.h"
#include "tests/support/test_device.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;
using test::kDevice;

namespace {

using Store = std::shared_ptr<zarr::MemoryStore>;

constexpr int64_t kCells = 3001, kDates = 6;

// A store of numbers with many digits; where `nan_every` is positive, every so-many-th cell of the
// second variable is NaN.
Store make_store(const std::vector<int64_t>& chunks, const std::string& dtype, int64_t members,
                 int64_t nan_every, const std::string& inner_codec = "lz4") {
  const test::AnemoiSpec spec{.num_dates = kDates, .num_members = members, .num_cells = kCells};
  const Store store = test::write_anemoi(spec);
  for (const auto& [key, value] : std::map(store->values())) {
    if (key.starts_with("data/")) store->erase(key);
  }
  const int64_t variables = static_cast<int64_t>(spec.variables.size());
  test::write_array(*store, "data",
                    {.shape = {kDates, variables, members, kCells},
                     .chunks = chunks,
                     .dtype = dtype,
                     .inner_codec = inner_codec,
                     .block_bytes = 8192},
                    [&](const std::vector<int64_t>& i) {
                      if (nan_every > 0 && i[1] == 1 && i[3] % nan_every == 0)
                        return std::numeric_limits<double>::quiet_NaN();
                      const auto at = static_cast<double>(i[3] + 100 * i[1] + 7 * i[2] + 13 * i[0]);
                      // Halves of the test's writer must be exact.
                      return dtype == "<f2" ? std::fmod(at, 512.0)
                                            : 1.0 / 3.0 + at * (dtype == "<f8" ? 1e-7 : 1.0);
                    });
  return store;
}

SampleSource make_source(const Store& store, const DatasetOptions& options, bool fills) {
  SampleSource source;
  source.dataset = std::make_shared<AnemoiDataset>(store, options);
  const DatasetInfo& info = source.dataset->info();
  for (int64_t v = 0; v < info.num_variables(); ++v) {
    source.normaliser.mul.push_back(0.37f + 0.1f * static_cast<float>(v));
    source.normaliser.add.push_back(-1.7f * static_cast<float>(v));
  }
  if (fills) {
    source.imputer =
        Imputer(info.variables, info.statistics,
                {{.variables = {"msl"}, .method = ImputeMethod::kConstant, .value = 3.5}});
  }
  return source;
}

// Decodes rows on the device of the test, by the steps that a caller takes.
void decode(RowDecoder& decoder, const std::vector<int64_t>& rows, int64_t threads) {
  decoder.open(rows);
  decoder.read(threads);
  decoder.parse();
  decoder.copy();
  decoder.decode();
  decoder.place();
  decoder.cells().sum().item<float>();  // waits for the stream
  decoder.check();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.cpu().contiguous().view(at::kInt).equal(b.contiguous().view(at::kInt));
}

// Compares rows with what the loader reads, twice, so that memory is used again.
void compare(const SampleSource& source) {
  const int64_t nodes = source.dataset->info().num_nodes();
  const auto pool = std::make_shared<BufferPool>(kDevice);
  RowDecoder decoder(source, kDevice, pool);
  for (const int64_t anchor : {2, 1}) {
    const Batch batch =
        read_batch(source, {.nodes = {0, nodes}}, {.anchors = {anchor}, .offsets = {-1, 0, 1}});
    decode(decoder, {anchor - 1, anchor, anchor + 1}, anchor);
    REQUIRE(same_bits(decoder.cells(), batch.values[0]));
    REQUIRE(decoder.nan_mask().defined() == batch.nan_mask.defined());
    if (batch.nan_mask.defined()) REQUIRE(decoder.nan_mask().cpu().equal(batch.nan_mask[0]));
  }
}

}  // namespace

TEST_CASE("rows that are decoded on the device have the bits of the reader", "[row_decoder]") {
  for (const char* dtype : {"<f4", "<f8", "<f2"}) {
    for (const std::vector<int64_t>& chunks : std::vector<std::vector<int64_t>>{
             {1, 5, 1, kCells}, {1, 2, 1, 1000}, {2, 5, 1, kCells}, {1, 1, 1, 700}}) {
      INFO(dtype << ", chunks of " << chunks[0] << ", " << chunks[1] << ", " << chunks[3]);
      compare(make_source(make_store(chunks, dtype, 1, 0), {}, false));
    }
  }
}

TEST_CASE("members and selected variables go where the reader puts them", "[row_decoder]") {
  for (const int64_t members_of_chunk : {1, 2, 3})
    compare(make_source(make_store({1, 5, members_of_chunk, kCells}, "<f4", 3, 0), {}, false));
  DatasetOptions options;
  options.select = {"tp", "2t", "q_500"};
  compare(make_source(make_store({1, 2, 1, 1000}, "<f4", 1, 0), options, false));
}

TEST_CASE("NaN are filled and marked, or named", "[row_decoder]") {
  for (const int64_t nan_every : {1, 3, 1000}) {
    const Store store = make_store({1, 5, 1, kCells}, "<f4", 1, nan_every);
    compare(make_source(store, {}, true));
    const SampleSource source = make_source(store, {}, false);
    RowDecoder decoder(source, kDevice, std::make_shared<BufferPool>(kDevice));
    REQUIRE_THROWS_WITH(decode(decoder, {0}, 1), ContainsSubstring("'msl' is NaN on 2020-01-01") &&
                                                     ContainsSubstring("in cell 0"));
  }
}

TEST_CASE("what the device cannot decode is refused", "[row_decoder]") {
  const auto pool = std::make_shared<BufferPool>(kDevice);
  const Store store = make_store({1, 5, 1, kCells}, "<f4", 1, 0);
  SampleSource remapped = make_source(store, {}, false);
  remapped.remapper = Remapper(remapped.dataset->info().variables, {{.variables = {"tp"}}});
  REQUIRE_THROWS_WITH(RowDecoder(remapped, kDevice, pool), ContainsSubstring("data.remapper"));

  const SampleSource other =
      make_source(make_store({1, 5, 1, kCells}, "<f4", 1, 0, "zstd"), {}, false);
  RowDecoder decoder(other, kDevice, pool);
  REQUIRE_THROWS_WITH(decode(decoder, {0}, 1),
                      ContainsSubstring("data/0.0.0.0") && ContainsSubstring("not of LZ4 streams"));
  store->erase("data/1.0.0.0");
  const SampleSource absent = make_source(store, {}, false);
  RowDecoder second(absent, kDevice, pool);
  REQUIRE_THROWS_WITH(second.open({0, 1}), ContainsSubstring("data/1.0.0.0"));
}

TEST_CASE("a damaged stream is an error that names the dates", "[row_decoder]") {
  const Store store = make_store({1, 5, 1, kCells}, "<f4", 1, 0);
  std::string chunk = store->values().at("data/3.0.0.0");
  for (size_t at = chunk.size() - 2000; at < chunk.size(); ++at)
    chunk[at] = '\xff';
  store->put("data/3.0.0.0", chunk);
  const SampleSource source = make_source(store, {}, false);
  RowDecoder decoder(source, kDevice, std::make_shared<BufferPool>(kDevice));
  decode(decoder, {2}, 1);
  REQUIRE_THROWS_AS(decode(decoder, {3}, 1), DataError);
}
