// SPDX-License-Identifier: Apache-2.0
// The dataset of these tests stores at every place a number that says which place it is.
#include "data/loader/data_loader.h"

#include <ATen/ATen.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <thread>

#include "core/check.h"
#include "core/time.h"
#include "data/host_share.h"
#include "data/loader/buffer_pool.h"
#include "data/sources/anemoi_dataset.h"
#include "data/zarr/store.h"
#include "tests/support/catch.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::data;

namespace {

constexpr int64_t kMembers = 2, kNodes = 5, kVariables = 3, kRows = 40;

float code(int64_t row, int64_t member, int64_t node, int64_t variable) {
  return static_cast<float>(((row * kMembers + member) * kNodes + node) * kVariables + variable);
}

class CodedDataset : public Dataset {
 public:
  CodedDataset() {
    info_.name = "coded";
    info_.variables = {"a", "b", "c"};
    info_.frequency_s = 6 * 3600;
    const int64_t start_s = parse_date("2020-01-01");
    for (int64_t row = 0; row < kRows; ++row)
      info_.dates_s.push_back(start_s + row * info_.frequency_s);
    info_.latitudes_deg.assign(kNodes, 0.0);
    info_.longitudes_deg.assign(kNodes, 0.0);
    info_.ensemble_size = kMembers;
  }

  const DatasetInfo& info() const override { return info_; }

  void read(int64_t row, NodeRange nodes, std::span<float> out) const override {
    ++num_reads;
    std::this_thread::sleep_for(std::chrono::microseconds((row * 7919) % 300));  // out of order
    if (broken_rows.count(row) != 0) throw DataError(concat("row ", row, " is broken"));
    if (row == busy_row && busy_times-- > 0)
      throw zarr::ReadError(concat("row ", row, " cannot be read now"));
    size_t i = 0;
    for (int64_t e = 0; e < kMembers; ++e) {
      for (int64_t n = nodes.begin; n < nodes.end; ++n) {
        for (int64_t v = 0; v < kVariables; ++v)
          out[i++] = code(row, e, n, v);
      }
    }
    if (nan_rows.count(row) != 0) out[static_cast<size_t>(nodes.size() * kVariables) - 2] = kNan;
  }

  std::string remark(int64_t row) const override {
    return nan_rows.count(row) != 0 ? "its chunk is lost" : "";
  }

  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::set<int64_t> broken_rows;
  std::set<int64_t> nan_rows;  // 'b' of the last cell of member 0
  mutable std::atomic<int> num_reads{0};
  int64_t busy_row = -1;  // fails so many times
  mutable std::atomic<int> busy_times{0};

 private:
  DatasetInfo info_;
};

// A source that leaves values as they are.
struct Fixture {
  std::shared_ptr<CodedDataset> dataset = std::make_shared<CodedDataset>();
  SampleSource source{dataset, {{1, 1, 1}, {0, 0, 0}}, {}};
  LoaderOptions options{.nodes = {0, kNodes}, .threads = 3, .prefetch_batches = 4};
};

std::vector<BatchRequest> single_rows(int64_t count) {
  std::vector<BatchRequest> requests;
  for (int64_t row = 0; row < count; ++row)
    requests.push_back({{row}, {0}});
  return requests;
}

// Waits up to a second for the dataset to have been read `count` times.
bool reads_reach(const CodedDataset& dataset, int count) {
  for (int i = 0; i < 1000 && dataset.num_reads < count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return dataset.num_reads >= count;
}

std::vector<at::Tensor> all_values(const Fixture& f, const std::vector<BatchRequest>& requests) {
  DataLoader loader(f.source, f.options, requests);
  std::vector<at::Tensor> values;
  Batch batch;
  while (loader.next(batch))
    values.push_back(batch.values);
  return values;
}

}  // namespace

TEST_CASE("every value of a batch comes from its row, member, cell and variable", "[loader]") {
  Fixture f;
  f.options.nodes = {1, 4};
  const Batch batch = read_batch(f.source, f.options, {{7, 20}, {-1, 0, 2}});
  REQUIRE(batch.values.sizes() == at::IntArrayRef{2, 3, kMembers, 3, kVariables});
  REQUIRE_FALSE(batch.nan_mask.defined());
  REQUIRE(batch.anchors == std::vector<int64_t>{7, 20});
  const auto values = batch.values.accessor<float, 5>();
  const int64_t anchors[] = {7, 20}, offsets[] = {-1, 0, 2};
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 3; ++t) {
      for (int64_t e = 0; e < kMembers; ++e) {
        for (int64_t n = 0; n < 3; ++n) {
          for (int64_t v = 0; v < kVariables; ++v)
            REQUIRE(values[b][t][e][n][v] == code(anchors[b] + offsets[t], e, n + 1, v));
        }
      }
    }
  }
}

TEST_CASE("batches come in the order of the requests, each with its own offsets", "[loader]") {
  const Fixture f;
  const std::vector<BatchRequest> requests{
      {{30}, {0, 1}}, {{2, 9}, {0}}, {{}, {0}}, {{5}, {-1, 0, 1}}, {{0}, {0}}};
  DataLoader loader(f.source, f.options, requests);
  Batch batch;
  for (const BatchRequest& request : requests) {
    REQUIRE(loader.next(batch));
    REQUIRE(batch.anchors == request.anchors);
    REQUIRE(batch.values.size(1) == static_cast<int64_t>(request.offsets.size()));
    if (request.anchors.empty()) continue;
    REQUIRE(batch.values[0][0][0][0][0].item<float>() ==
            code(request.anchors[0] + request.offsets[0], 0, 0, 0));
  }
  REQUIRE_FALSE(loader.next(batch));
  REQUIRE_FALSE(loader.next(batch));
  REQUIRE(loader.wait_s() >= 0.0);
}

TEST_CASE("the number of threads does not change the batches", "[loader]") {
  Fixture f;
  std::vector<BatchRequest> requests;
  for (int64_t i = 0; i < 12; ++i)
    requests.push_back({{(5 * i) % 30, (11 * i) % 30}, {0, 1, 2}});
  f.options.threads = 1;
  const std::vector<at::Tensor> one = all_values(f, requests);
  f.options.threads = 4;
  const std::vector<at::Tensor> four = all_values(f, requests);
  REQUIRE(one.size() == requests.size());
  REQUIRE(four.size() == one.size());
  for (size_t i = 0; i < one.size(); ++i)
    REQUIRE(at::equal(one[i], four[i]));
}

TEST_CASE("no more batches are read ahead than allowed", "[loader]") {
  Fixture f;
  f.options.prefetch_batches = 3;
  f.options.threads = 4;
  DataLoader loader(f.source, f.options, single_rows(20));
  Batch batch;
  for (int taken = 0; taken < 4; ++taken) {
    REQUIRE(reads_reach(*f.dataset, taken + 3));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    REQUIRE(f.dataset->num_reads == taken + 3);
    REQUIRE(loader.next(batch));
  }
}

TEST_CASE("an error reaches the batch it belongs to, and no other", "[loader]") {
  const Fixture f;
  f.dataset->broken_rows = {2, 5};
  DataLoader loader(f.source, f.options, single_rows(8));
  Batch batch;
  for (int64_t row = 0; row < 8; ++row) {
    if (f.dataset->broken_rows.count(row) != 0) {
      REQUIRE_THROWS_WITH(loader.next(batch), ContainsSubstring(concat("row ", row)));
    } else {
      REQUIRE(loader.next(batch));
      REQUIRE(batch.anchors == std::vector<int64_t>{row});
    }
  }
  REQUIRE_FALSE(loader.next(batch));
}

TEST_CASE("a loader can be dropped at any time", "[loader]") {
  const Fixture f;
  for (int taken = 0; taken < 4; ++taken) {
    DataLoader loader(f.source, f.options, single_rows(kRows));
    Batch batch;
    for (int i = 0; i < taken; ++i)
      REQUIRE(loader.next(batch));
  }
  // Each loader reads at most the taken batches and those read ahead.
  REQUIRE(f.dataset->num_reads <= (0 + 1 + 2 + 3) + 4 * f.options.prefetch_batches);
}

TEST_CASE("NaN that nobody fills are reported with variable and date", "[loader]") {
  const Fixture f;
  f.dataset->nan_rows = {3};
  REQUIRE_THROWS_WITH(read_batch(f.source, f.options, {{1}, {0, 1, 2}}),
                      ContainsSubstring("'coded': variable 'b' is NaN on 2020-01-01T18:00:00 in "
                                        "cell 4: its chunk is lost"));
}

TEST_CASE("fields are filled, then normalised; the mask tells where", "[loader]") {
  Fixture f;
  f.dataset->nan_rows = {3, 4};
  f.source.normaliser = {{1, 2, 1}, {0, 10, 0}};
  f.source.imputer =
      Imputer(f.dataset->info().variables, {}, {{{"b"}, ImputeMethod::kConstant, 0.5}});
  const Batch batch = read_batch(f.source, f.options, {{3, 2}, {0, 1}});
  const at::Tensor b = batch.values.select(-1, 1);  // (B, T, E, N)
  REQUIRE(b[0][0][0][kNodes - 1].item<float>() == 11.0f);
  REQUIRE(b[0][0][1][kNodes - 1].item<float>() == 11.0f);  // member 0 decides
  REQUIRE(b[0][0][0][0].item<float>() == 2 * code(3, 0, 0, 1) + 10);
  // Only what was NaN at the first time: rows 3 and 2.
  REQUIRE(batch.nan_mask.sum().item<int64_t>() == 1);
  REQUIRE(batch.nan_mask[0][kNodes - 1][1].item<int>() == 1);
}

TEST_CASE("a read that fails in passing is tried again, and an error if it goes on", "[loader]") {
  Fixture f;
  f.dataset->busy_row = 3;
  f.dataset->busy_times = 2;
  f.options.retries = 2;
  REQUIRE(all_values(f, single_rows(6)).size() == 6);
  f.dataset->busy_times = 2;
  f.options.retries = 1;
  DataLoader loader(f.source, f.options, single_rows(6));
  Batch batch;
  for (int64_t row = 0; row < 3; ++row)
    REQUIRE(loader.next(batch));
  REQUIRE_THROWS_WITH(loader.next(batch), "row 3 cannot be read now (date 2020-01-01T18:00:00)");
}

TEST_CASE("a loader that waits for another try can be dropped at once", "[loader]") {
  Fixture f;
  f.dataset->busy_row = 0;
  f.dataset->busy_times = 1000;
  f.options.retries = 100;
  const auto start = std::chrono::steady_clock::now();
  {
    DataLoader loader(f.source, f.options, single_rows(6));
    REQUIRE(reads_reach(*f.dataset, 3));  // 0.2 and 0.8 s apart
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  REQUIRE(seconds.count() < 2.5);  // the next try would have come after 3.2 s
}

TEST_CASE("buffers stay within their memory, and one batch must have room", "[loader]") {
  Fixture f;
  constexpr int64_t kBatchBytes = 2 * kMembers * kNodes * kVariables * 4;  // as fields and as cells
  f.options.memory_bytes = 3 * kBatchBytes + 7;
  {
    DataLoader loader(f.source, f.options, single_rows(20));
    Batch batch;
    for (int row = 0; row < 20; ++row) {
      REQUIRE(loader.next(batch));
      REQUIRE(loader.buffer_bytes() <= f.options.memory_bytes);
    }
  }
  f.options.memory_bytes = kBatchBytes - 1;
  REQUIRE_THROWS_AS(DataLoader(f.source, f.options, single_rows(20)), ConfigError);
  // Batches that the consumer keeps are more than the loader's own: it goes on all the same.
  f.options.memory_bytes = 2 * kBatchBytes;
  REQUIRE(all_values(f, single_rows(12)).size() == 12);
}

TEST_CASE("the same dates have the same bits whatever chunks, codecs, threads and layout",
          "[loader]") {
  constexpr int64_t kCells = 700;
  std::vector<BatchRequest> requests;
  for (const int64_t row : {4, 1, 7})
    requests.push_back({{row, row + 1}, {-1, 0, 1}});
  std::vector<at::Tensor> expected;
  const auto check = [&](const test::AnemoiSpec& spec, int64_t threads, BatchLayout layout) {
    const auto dataset =
        std::make_shared<AnemoiDataset>(test::write_anemoi(spec), DatasetOptions{.drop = {"msl"}});
    const DatasetInfo& info = dataset->info();
    Statistics statistics = info.statistics;
    const SampleSource source{dataset, Normaliser::create(info.variables, statistics, {}), {}};
    DataLoader loader(source, {.nodes = {3, kCells - 5}, .threads = threads, .layout = layout},
                      requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      Batch batch;
      REQUIRE(loader.next(batch));
      at::Tensor values = batch.values.clone();
      if (layout == BatchLayout::kFields) values = values.transpose(-1, -2).contiguous();
      if (expected.size() == i) expected.push_back(values);
      REQUIRE(at::equal(values, expected[i]));
    }
  };
  test::AnemoiSpec spec{.num_dates = 12, .num_cells = kCells};
  check(spec, 1, BatchLayout::kCells);
  for (const int64_t threads : {1, 3, 8}) {
    for (const BatchLayout layout : {BatchLayout::kCells, BatchLayout::kFields}) {
      for (const std::vector<int64_t>& chunk : std::vector<std::vector<int64_t>>{{1, 5, 1, kCells},
                                                                                 {1, 5, 1, 100},
                                                                                 {1, 2, 1, 333},
                                                                                 {3, 5, 1, kCells},
                                                                                 {4, 1, 1, 64}}) {
        for (const char* codec : {"lz4", "zstd", "blosclz"}) {
          test::AnemoiSpec other = spec;
          other.chunks = chunk;
          other.inner_codec = codec;
          other.block_bytes = 4096;
          INFO(threads << " threads, " << codec << ", chunks of " << chunk[0] << " dates and "
                       << chunk[3] << " cells");
          check(other, threads, layout);
        }
      }
    }
  }
}

TEST_CASE("ranks of a host that read together get their cells of the same batches", "[loader]") {
  constexpr int64_t kCells = 700, kSplit = 230, kRanks = 2, kSlots = 3;
  const test::AnemoiSpec spec{.num_dates = 30, .num_cells = kCells, .block_bytes = 4096};
  const auto store = test::write_anemoi(spec);
  std::vector<BatchRequest> requests;
  for (int64_t row = 1; row < 27; ++row)
    requests.push_back({{row, 27 - row}, {-1, 0, 1}});
  const auto open = [&](const std::vector<ImputeRule>& rules) {
    const auto dataset = std::make_shared<AnemoiDataset>(store, DatasetOptions{});
    Statistics statistics = dataset->info().statistics;
    const Imputer imputer(dataset->info().variables, statistics, rules);
    return SampleSource{dataset, Normaliser::create(dataset->info().variables, statistics, {}),
                        imputer};
  };
  // If the store has no chunk, everything is NaN: filled by a constant, or by another variable.
  store->erase("data/8.0.0.0");
  const std::vector<std::string> all = spec.variables;
  const std::vector<ImputeRule> constant{{all, ImputeMethod::kConstant, 0.25}};
  for (const BatchLayout layout : {BatchLayout::kCells, BatchLayout::kFields}) {
    const SampleSource source = open(constant);
    const int64_t bytes = 2 * 3 * 5 * kCells * 4 + 2 * 5 * kCells;
    const NodeRange whole{0, kCells};
    const auto first = HostShare::create({0, kRanks, whole}, kSlots, bytes);
    const auto second = HostShare::open(first->name(), {1, kRanks, whole}, kSlots, bytes);
    first->unlink_name();
    std::atomic<int> wrong = 0;
    const auto run_rank = [&](const std::shared_ptr<HostShare>& share, NodeRange nodes) {
      for (int epoch = 0; epoch < 2; ++epoch) {  // one loader after the other
        DataLoader loader(source, {.nodes = nodes, .threads = 2, .layout = layout, .share = share},
                          requests);
        Batch batch;
        for (const BatchRequest& request : requests) {
          if (!loader.next(batch)) ++wrong;
          const Batch alone = read_batch(source, {.nodes = nodes, .layout = layout}, request);
          if (!at::equal(batch.values, alone.values) || !at::equal(batch.nan_mask, alone.nan_mask))
            ++wrong;
        }
      }
    };
    std::thread other([&] { run_rank(second, {kSplit, kCells}); });
    run_rank(first, {0, kSplit});
    other.join();
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("an error of one rank reaches all that read together", "[loader]") {
  Fixture f;
  f.dataset->broken_rows = {5};
  const NodeRange whole{0, kNodes};
  const int64_t bytes = kMembers * kNodes * kVariables * 4;
  const auto first = HostShare::create({0, 2, whole}, 3, bytes);
  const auto second = HostShare::open(first->name(), {1, 2, whole}, 3, bytes);
  first->unlink_name();
  std::array<std::string, 2> errors;
  const auto run_rank = [&](size_t rank, const std::shared_ptr<HostShare>& share) {
    LoaderOptions options = f.options;
    options.share = share;
    DataLoader loader(f.source, options, single_rows(8));
    Batch batch;
    try {
      while (loader.next(batch)) {
      }
    } catch (const DataError& error) {
      errors[rank] = error.what();
    }
  };
  std::thread other([&] { run_rank(1, second); });
  run_rank(0, first);
  other.join();
  REQUIRE(errors[0] == "row 5 is broken (date 2020-01-02T06:00:00)");
  REQUIRE(errors[1] == errors[0]);
}

TEST_CASE("a rank that ends does not leave those waiting that read with it", "[loader]") {
  Fixture f;
  const NodeRange whole{0, kNodes};
  const int64_t bytes = kMembers * kNodes * kVariables * 4;
  const auto first = HostShare::create({0, 2, whole}, 3, bytes);
  auto second = HostShare::open(first->name(), {1, 2, whole}, 3, bytes);
  first->unlink_name();
  f.options.share = first;
  DataLoader loader(f.source, f.options, single_rows(8));
  Batch batch;
  const auto in_half_a_second = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  REQUIRE_THROWS_AS(
      loader.next(batch, [&] { return std::chrono::steady_clock::now() > in_half_a_second; }),
      GivenUp);
  second.reset();  // as the end of its process does
  REQUIRE_THROWS_WITH(loader.next(batch), ContainsSubstring("rank 1 of those that read"));
}

TEST_CASE("a loader whose threads wait for other ranks can be left", "[loader]") {
  const NodeRange whole{0, kNodes};
  const int64_t bytes = kMembers * kNodes * kVariables * 4;
  for (int i = 0; i < 50; ++i) {  // at any moment, also while the ranks are counted
    Fixture f;
    const auto first = HostShare::create({0, 2, whole}, 3, bytes);
    const auto second = HostShare::open(first->name(), {1, 2, whole}, 3, bytes);
    first->unlink_name();
    f.options.share = first;
    f.options.threads = 4;
    const DataLoader loader(f.source, f.options, single_rows(8));
    std::this_thread::sleep_for(std::chrono::microseconds(97 * i));
  }
  SUCCEED("none hangs");
}

TEST_CASE("batches can be added while others are read, larger ones, too", "[loader]") {
  Fixture f;
  f.options.memory_bytes = 6 * 2 * kMembers * kNodes * kVariables * 4;
  f.options.prefetch_batches = 0;
  DataLoader loader(f.source, f.options, single_rows(3));
  Batch batch;
  REQUIRE(loader.next(batch));
  loader.add({{{7}, {0, 1}}, {{8, 9}, {0}}});
  const std::vector<int64_t> rows{1, 2, 7, 8};
  for (const int64_t row : rows) {
    REQUIRE(loader.next(batch));
    REQUIRE(batch.anchors.front() == row);
    REQUIRE(batch.values[0][0][0][0][0].item<float>() == code(row, 0, 0, 0));
  }
  REQUIRE_FALSE(loader.next(batch));
  loader.add(single_rows(1));
  REQUIRE(loader.next(batch));
  REQUIRE_FALSE(loader.next(batch));
}

TEST_CASE("loaders that share a pool use the same buffers one after the other", "[loader]") {
  Fixture f;
  f.options.pool = std::make_shared<BufferPool>();
  for (int epoch = 0; epoch < 5; ++epoch) {
    DataLoader loader(f.source, f.options, single_rows(kRows));
    Batch batch;
    while (loader.next(batch)) {
    }
  }
  REQUIRE(f.options.pool->num_allocations() <= f.options.prefetch_batches + 1);
}

TEST_CASE("options that cannot work are refused", "[loader]") {
  Fixture f;
  f.options.threads = 0;
  REQUIRE_THROWS_AS(DataLoader(f.source, f.options, {}), Error);
}

#ifndef AIFS_SANITIZE  // sanitizers need address space without limit
TEST_CASE("threads that cannot be started are an error, and those that run do not wait for ever",
          "[loader]") {
  Fixture f;
  f.options.threads = 256;
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit limit = before;
  limit.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{128} << 20);
  REQUIRE(::setrlimit(RLIMIT_AS, &limit) == 0);
  std::string message;
  try {
    const DataLoader loader(f.source, f.options, single_rows(20));
  } catch (const Error& error) {
    message = error.what();
  }
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  REQUIRE_THAT(message, ContainsSubstring("256 reader threads"));
}
#endif
