// SPDX-License-Identifier: Apache-2.0
#include "bench/data.h"

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/data_parts.h"
#include "app/device.h"
#include "bench/page_cache.h"
#include "core/check.h"
#include "data/anemoi_dataset.h"
#include "data/device_feed.h"
#include "data/sampler.h"
#include "data/zarr/store.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// What all threads together have spent and read.
struct Meter {
  std::atomic<int64_t> nanoseconds = 0, bytes = 0;

  // Calls `read`, which gives what it gave, and counts its time.
  template <class Read>
  auto time(Read&& read) {
    const Clock::time_point start = Clock::now();
    const auto result = read();
    nanoseconds += std::chrono::nanoseconds(Clock::now() - start).count();
    return result;
  }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds); }
};

// A file that counts what it gives.
class MeteredFile : public zarr::ValueFile {
 public:
  MeteredFile(std::unique_ptr<const zarr::ValueFile> inner, Meter& meter)
      : inner_(std::move(inner)), meter_(meter) {}
  size_t size() const override { return inner_->size(); }
  void read(size_t offset, size_t length, std::byte* out) const override {
    meter_.time([&] { return inner_->read(offset, length, out), true; });
    meter_.bytes += static_cast<int64_t>(length);
  }
  void prefetch(size_t offset, size_t length) const override { inner_->prefetch(offset, length); }

 private:
  std::unique_ptr<const zarr::ValueFile> inner_;
  Meter& meter_;
};

// A store that counts what its files give.
class MeteredStore : public zarr::Store {
 public:
  MeteredStore(std::shared_ptr<const zarr::Store> inner, Meter& meter)
      : inner_(std::move(inner)), meter_(meter) {}

  const std::string& name() const override { return inner_->name(); }
  bool get(const std::string& key, size_t max_bytes, zarr::Buffer& out) const override {
    return count(out, [&] { return inner_->get(key, max_bytes, out); });
  }
  bool get_range(const std::string& key, size_t offset, size_t length,
                 zarr::Buffer& out) const override {
    return count(out, [&] { return inner_->get_range(key, offset, length, out); });
  }
  std::unique_ptr<const zarr::ValueFile> open(const std::string& key) const override {
    auto file = inner_->open(key);
    if (!file) return nullptr;
    return std::make_unique<MeteredFile>(std::move(file), meter_);
  }
  std::optional<size_t> size(const std::string& key) const override { return inner_->size(key); }
  std::vector<std::string> root_names() const override { return inner_->root_names(); }

 private:
  template <class Read>
  bool count(const zarr::Buffer& out, Read&& read) const {
    const bool found = meter_.time(read);
    if (found) meter_.bytes += static_cast<int64_t>(out.size());
    return found;
  }

  std::shared_ptr<const zarr::Store> inner_;
  Meter& meter_;
};

// The first batches of a run with this configuration on one rank.
std::vector<data::BatchRequest> first_requests(const DataBenchOptions& options,
                                               const app::DataParts& parts) {
  const data::DatasetInfo& info = parts.training->info();
  const std::vector<int64_t> offsets = parts.window.offsets(/*steps=*/1);
  const data::Sampler sampler(data::usable_anchors(info.num_rows(), info.missing_rows, offsets),
                              {.seed = static_cast<uint64_t>(options.config.run.seed),
                               .batch_size = options.config.data.batch_size,
                               .workers = options.config.data.anemoi_workers});
  std::vector<data::BatchRequest> requests;
  for (std::vector<int64_t>& anchors : sampler.epoch(0)) {
    if (static_cast<int64_t>(requests.size()) == options.batches) break;
    requests.push_back({std::move(anchors), offsets});
  }
  if (requests.empty()) throw DataError(concat("'", info.name, "' has no training samples"));
  return requests;
}

// A store that is counted, or none for data that are no files.
std::shared_ptr<const zarr::Store> metered_store(const app::RunConfig& config, Meter& files) {
  const std::shared_ptr<const zarr::Store> store = app::open_store(config);
  return store ? std::make_shared<MeteredStore>(store, files) : nullptr;
}

// Whole chunks of a few dates, read and decoded by this thread.
Json read_bare(const DataBenchOptions& options) {
  constexpr int64_t kDates = 8;
  Meter files;
  const std::shared_ptr<const zarr::Store> store = metered_store(options.config, files);
  const app::DataParts parts = app::make_data(options.config, store);
  const zarr::Array array(store, "data");
  const auto* dataset = dynamic_cast<const data::AnemoiDataset*>(parts.training.get());
  const int64_t first = dataset->stored_row(0);
  const int64_t dates = std::min(kDates, parts.training->info().num_rows());
  zarr::Region region = zarr::Region::whole(array.meta().shape);
  zarr::ChunkScratch scratch;
  double seconds = 0.0, file_s = 0.0;
  for (int64_t date = -1; date < dates; ++date) {  // the first one only warms memory up
    region.begin[0] = first + std::max<int64_t>(date, 0);
    region.end[0] = region.begin[0] + 1;
    const double files_before = files.seconds();
    const Clock::time_point start = Clock::now();
    array.grid().for_each_part(
        region, [&](const zarr::ChunkPart& part) { array.decode_chunk(part.chunk, {}, scratch); });
    if (date < 0) continue;
    seconds += std::chrono::duration<double>(Clock::now() - start).count();
    file_s += files.seconds() - files_before;
  }
  const double a_date_ms = 1e3 / static_cast<double>(dates);
  return {{"case", "bare"},
          {"dates", dates},
          {"date_ms", seconds * a_date_ms},
          {"read_ms", file_s * a_date_ms},
          {"decode_ms", (seconds - file_s) * a_date_ms}};
}

// One pass over the first batches of a dataset that was opened for it, so that nothing is decoded
// already.
Json read_once(const DataBenchOptions& options, const char* name, int64_t threads) {
  Meter files;
  const std::shared_ptr<const zarr::Store> store = metered_store(options.config, files);
  Json json{{"case", name}, {"threads", threads}};
  if (options.cells < 1.0) json["cells"] = options.cells;
  if (store) json["resident"] = resident_share(store->name());
  const app::DataParts parts = app::make_data(options.config, store);
  const auto cells = static_cast<double>(parts.training->info().num_nodes());
  const data::LoaderOptions loading{
      .nodes = {0, std::max<int64_t>(1, std::llround(options.cells * cells))},
      .threads = threads,
      .prefetch_batches = options.config.data.prefetch_batches,
      .memory_bytes = options.config.data.memory_mib << 20};
  const int64_t opening_bytes = files.bytes;
  const std::vector<data::BatchRequest> requests = first_requests(options, parts);
  int64_t samples = 0, bytes = 0, dates = 0;
  for (const data::BatchRequest& request : requests)
    dates += static_cast<int64_t>(request.anchors.size() * request.offsets.size());
  const Clock::time_point start = Clock::now();
  data::DeviceFeed feed(parts.training_source, loading, requests, options.device);
  for (data::Batch batch; feed.next(batch);) {
    samples += batch.values.size(0);
    bytes += static_cast<int64_t>(batch.values.nbytes());
  }
  app::wait_for(options.device);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto per_second = [&](int64_t count) { return static_cast<double>(count) / seconds; };
  json.update({{"samples", samples},
               {"dates", dates},
               {"seconds", seconds},
               {"samples_s", per_second(samples)},
               {"mb_s", 1e-6 * per_second(bytes)},
               {"busy", feed.busy_s() / (seconds * static_cast<double>(threads))},
               {"thread_ms", 1e3 * feed.busy_s() / static_cast<double>(dates)}});
  if (store) json["stored_mb_s"] = 1e-6 * per_second(files.bytes - opening_bytes);
  return json;
}

}  // namespace

Json time_reading(const DataBenchOptions& options, const std::function<void(const Json&)>& visit) {
  const auto store = app::open_store(options.config);
  Json results = Json::array(), bare;
  const auto add = [&](Json result) {
    if (!bare.is_null() && result.contains("thread_ms")) {
      const auto thread_ms = result["thread_ms"].get<double>();
      result["share"] = bare["date_ms"].get<double>() / thread_ms;
      result["share_of_decode"] = bare["decode_ms"].get<double>() / thread_ms;
    }
    results.push_back(result);
    visit(results.back());
  };
  std::vector<int64_t> threads = options.threads;
  if (threads.empty()) threads.push_back(options.config.data.threads);
  if (store && options.cold) {
    drop_page_cache(store->name());
    add(read_once(options, "cold", threads.front()));
  }
  if (store) {
    bare = read_bare(options);
    add(bare);
  }
  for (const int64_t count : threads)
    add(read_once(options, "warm", count));
  return results;
}

}  // namespace aifs::bench
