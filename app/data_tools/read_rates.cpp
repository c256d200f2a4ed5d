// SPDX-License-Identifier: Apache-2.0
#include "app/data_tools/read_rates.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/data_tools/page_cache.h"
#include "app/run/data_parts.h"
#include "app/run/device.h"
#include "app/run/host_share.h"
#include "app/run/make_data.h"
#include "core/check.h"
#include "core/cores.h"
#include "core/seconds_since.h"
#include "data/loader/buffer_pool.h"
#include "data/loader/device_feed.h"
#include "data/loader/sampler.h"
#include "data/sources/anemoi_dataset.h"
#include "data/zarr/store.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Batches of a pass that are not timed: the first ones find buffers and files, the last ones keep
// all threads at work until time ends.
constexpr size_t kLeadIn = 6, kLeadOut = 6;

// Describes what all threads together have spent and read.
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
  bool drop_copy(const std::string& key) const override { return inner_->drop_copy(key); }

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

// Stores that are counted, or none for data that are no files.
std::shared_ptr<DataStores> metered_stores(const RunConfig& config, Meter& files) {
  const auto stores = open_stores(config);
  if (stores) {
    stores->wrap([&files](std::shared_ptr<const zarr::Store> store) {
      return std::make_shared<MeteredStore>(std::move(store), files);
    });
  }
  return stores;
}

// Reads and decodes all chunks of a date, and keeps nothing.
class BareReader {
 public:
  explicit BareReader(const zarr::Array& array)
      : array_(array), region_(zarr::Region::whole(array.meta().shape)) {}

  void decode(int64_t stored_row) {
    region_.begin[0] = stored_row;
    region_.end[0] = stored_row + 1;
    array_.grid().for_each_part(region_, [&](const zarr::ChunkPart& part) {
      array_.decode_chunk(part.chunk, {}, scratch_);
    });
  }

 private:
  const zarr::Array& array_;
  zarr::Region region_;
  zarr::ChunkScratch scratch_;
};

// Whole chunks read and decoded by threads that share nothing: each reads a few dates. Null where
// they would need too much memory.
Json read_bare(const ReadRateOptions& options, int64_t threads) {
  constexpr int64_t kDates = 8, kMostBareBytes = int64_t{8} << 30;
  Meter files, all;
  const auto stores = metered_stores(options.config, files);
  const DataParts parts = make_data(options.config, stores);
  const zarr::Array array(stores->open(options.config.data.dataset.dataset), "data");
  const auto* dataset = dynamic_cast<const data::AnemoiDataset*>(parts.training.get());
  if (threads > 1 && threads * array.meta().chunk_bytes() > kMostBareBytes) return {};
  const int64_t first = dataset->stored_row(0);
  const int64_t rows = parts.training->info().num_rows();
  const int64_t dates = std::min(kDates, rows);
  std::mutex mutex;
  std::exception_ptr fault;  // of the first thread that has one
  std::barrier warm(threads, [&]() noexcept { files.nanoseconds = 0; });
  const auto work = [&](int64_t thread) {
    bool is_warm = false;
    try {
      BareReader reader(array);
      const auto row = [&](int64_t date) { return first + (thread * dates + date) % rows; };
      reader.decode(row(0));  // only warms memory up
      warm.arrive_and_wait();
      is_warm = true;
      all.time([&] {
        for (int64_t date = 0; date < dates; ++date)
          reader.decode(row(date));
        return true;
      });
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!fault) fault = std::current_exception();
      if (!is_warm) warm.arrive_and_drop();
    }
  };
  std::vector<std::jthread> others;
  for (int64_t thread = 1; thread < threads; ++thread)
    others.emplace_back(work, thread);
  work(0);
  others.clear();
  if (fault) std::rethrow_exception(fault);
  const double a_date_ms = 1e3 / static_cast<double>(threads * dates);
  return {{"case", "bare"},
          {"threads", threads},
          {"dates", threads * dates},
          {"date_ms", all.seconds() * a_date_ms},
          {"read_ms", files.seconds() * a_date_ms},
          {"decode_ms", (all.seconds() - files.seconds()) * a_date_ms}};
}

// A pass through some batches, timed in the middle of a longer one: reading is under way when time
// begins to count, and goes on when it ends.
struct TimedPass {
  double seconds = 0.0, busy_s = 0.0;  // on the clock; of all threads
  int64_t samples = 0, bytes = 0, dates = 0, stored_bytes = 0;
};

TimedPass time_batches(data::DeviceFeed& feed, const ReadRateOptions& options,
                       const std::vector<data::BatchRequest>& requests, const Meter& files) {
  TimedPass pass;
  Clock::time_point start;
  double busy_before = 0.0;
  int64_t stored_before = 0;
  data::Batch batch;
  for (size_t i = 0; i + kLeadOut < requests.size(); ++i) {
    if (i == kLeadIn) {
      wait_for(options.device);
      start = Clock::now();
      busy_before = feed.busy_s();
      stored_before = files.bytes;
    }
    if (!feed.next(batch)) break;
    if (i < kLeadIn) continue;
    pass.samples += batch.values.size(0);
    pass.dates += batch.values.size(0) * batch.values.size(1);
    pass.bytes += static_cast<int64_t>(batch.values.nbytes());
  }
  wait_for(options.device);
  pass.seconds = seconds_since(start);
  pass.busy_s = feed.busy_s() - busy_before;
  pass.stored_bytes = files.bytes - stored_before;
  return pass;
}

// Reads the first batches of a dataset that was opened for it, so that nothing is decoded already.
Json read_once(const ReadRateOptions& options, const char* name, int64_t threads,
               const std::shared_ptr<data::BufferPool>& pool) {
  Meter files;
  const auto stores = metered_stores(options.config, files);
  const std::vector<std::string> names = data::store_names(options.config.data.dataset);
  Json json{{"case", name}, {"threads", threads}};
  if (options.cells < 1.0) json["cells"] = options.cells;
  if (stores) json["resident"] = resident_share(names.front());
  const DataParts parts = make_data(options.config, stores);
  const auto cells = static_cast<double>(parts.training->info().num_nodes());
  const data::LoaderOptions loading{
      .nodes = {0, std::max<int64_t>(1, std::llround(options.cells * cells))},
      .threads = threads,
      .prefetch_batches = options.config.data.prefetch_batches,
      .memory_bytes = options.config.data.memory_mib << 20,
      .pool = pool};
  const std::vector<data::BatchRequest> first = first_requests(
      options.config, parts, kLeadIn + static_cast<size_t>(options.batches) + kLeadOut);
  std::vector<data::BatchRequest> requests;
  const size_t timed = std::min(first.size(), static_cast<size_t>(options.batches));
  for (size_t i = 0; i < kLeadIn + timed + kLeadOut; ++i)
    requests.push_back(first[i % first.size()]);  // short epochs are read again
  data::DeviceFeed feed(parts.training_source, loading, requests, options.device);
  const TimedPass pass = time_batches(feed, options, requests, files);
  const auto per_second = [&](int64_t n) { return static_cast<double>(n) / pass.seconds; };
  json.update({{"samples", pass.samples},
               {"dates", pass.dates},
               {"seconds", pass.seconds},
               {"samples_s", per_second(pass.samples)},
               {"mb_s", 1e-6 * per_second(pass.bytes)},
               {"busy", std::min(1.0, pass.busy_s / (pass.seconds * static_cast<double>(threads)))},
               {"thread_ms", 1e3 * pass.busy_s / static_cast<double>(pass.dates)},
               {"buffer_mib", static_cast<double>(pool->num_bytes()) / 1048576.0}});
  if (stores) json["stored_mb_s"] = 1e-6 * per_second(pass.stored_bytes);
  return json;
}

}  // namespace

std::vector<data::BatchRequest> first_requests(const RunConfig& config, const DataParts& parts,
                                               size_t most) {
  const data::DatasetInfo& info = parts.training->info();
  const std::vector<int64_t> offsets = parts.window.offsets(/*steps=*/1);
  const data::Sampler sampler(data::usable_anchors(info.num_rows(), info.missing_rows, offsets),
                              {.seed = static_cast<uint64_t>(config.run.seed),
                               .batch_size = config.data.batch_size,
                               .workers = config.data.anemoi_workers});
  std::vector<data::BatchRequest> requests;
  for (std::vector<int64_t>& anchors : sampler.epoch(0)) {
    if (requests.size() == most) break;
    requests.push_back({std::move(anchors), offsets});
  }
  if (requests.empty()) throw DataError(concat("'", info.name, "' has no training samples"));
  return requests;
}

Json time_reading(const ReadRateOptions& options, const std::function<void(const Json&)>& visit) {
  require_one_dataset(options.config, "reading is measured for one dataset at a time",
                      "name it in data.dataset");
  const bool is_file = options.config.data.kind == data::SourceKind::kAnemoi;
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
  if (threads.empty())
    threads.push_back(reader_threads(options.config.data, options.device, usable_cores()));
  const auto pool = std::make_shared<data::BufferPool>(options.device);
  if (is_file && options.cold) {
    for (const std::string& name : data::store_names(options.config.data.dataset))
      drop_page_cache(name);
    add(read_once(options, "cold", threads.front(), pool));
  }
  for (const int64_t count : threads) {
    if (is_file && options.config.data.dataset.is_plain()) {
      Json measured = read_bare(options, count);
      if (!measured.is_null()) add(bare = std::move(measured));
    }
    add(read_once(options, "warm", count, pool));
  }
  return results;
}

std::string reading_text(const Json& result) {
  const auto number = [&](const char* key) { return result[key].get<double>(); };
  char text[256];
  if (result["case"] == "bare") {
    std::snprintf(
        text, sizeof text,
        "bare  %3.0f threads %8.1f ms of a thread for a date: %.1f reading, %.1f decoding",
        number("threads"), number("date_ms"), number("read_ms"), number("decode_ms"));
    return text;
  }
  std::snprintf(text, sizeof text,
                "%-5s %3.0f threads %8.2f samples/s %9.1f MB/s, busy %5.1f %%, %8.2f ms of a "
                "thread for a date",
                result["case"].get<std::string>().c_str(), number("threads"), number("samples_s"),
                number("mb_s"), 100.0 * number("busy"), number("thread_ms"));
  std::string line = text;
  const auto add = [&](const char* format, double value) {
    std::snprintf(text, sizeof text, format, value);
    line += text;
  };
  if (result.contains("share")) add(", %.2f of the bare rate", number("share"));
  if (result.contains("resident"))
    add("; %.0f %% of the files in memory before", 100.0 * number("resident"));
  return line;
}

}  // namespace aifs::app
