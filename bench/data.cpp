// SPDX-License-Identifier: Apache-2.0
#include "bench/data.h"

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/device.h"
#include "app/wiring.h"
#include "bench/page_cache.h"
#include "core/check.h"
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

// A dataset that counts the time of its reads, files and decoding.
class MeteredDataset : public data::Dataset {
 public:
  MeteredDataset(std::shared_ptr<const data::Dataset> inner, Meter& meter)
      : inner_(std::move(inner)), meter_(meter) {}

  const data::DatasetInfo& info() const override { return inner_->info(); }
  void read(int64_t row, data::NodeRange nodes, std::span<float> out) const override {
    meter_.time([&] {
      inner_->read(row, nodes, out);
      return true;
    });
  }

 private:
  std::shared_ptr<const data::Dataset> inner_;
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

// One pass over the first batches of a dataset that was opened for it, so that nothing is decoded
// already.
Json read_once(const DataBenchOptions& options, const char* name) {
  Meter files, reads;
  std::shared_ptr<const zarr::Store> store = app::open_store(options.config);
  Json json{{"case", name}};
  if (store) {
    json["resident"] = resident_share(store->name());
    store = std::make_shared<MeteredStore>(store, files);
  }
  app::DataParts parts = app::make_data(options.config, store);
  parts.training_source.dataset = std::make_shared<MeteredDataset>(parts.training, reads);
  const data::LoaderOptions loading{.nodes = {0, parts.training->info().num_nodes()},
                                    .threads = options.config.data.threads,
                                    .prefetch_batches = options.config.data.prefetch_batches,
                                    .memory_bytes = options.config.data.memory_mib << 20};
  const double opening_s = files.seconds();
  const int64_t opening_bytes = files.bytes;
  int64_t samples = 0, bytes = 0;
  const Clock::time_point start = Clock::now();
  data::DeviceFeed feed(parts.training_source, loading, first_requests(options, parts),
                        options.device);
  for (data::Batch batch; feed.next(batch);) {
    samples += batch.values.size(0);
    bytes += static_cast<int64_t>(batch.values.nbytes());
  }
  app::wait_for(options.device);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto per_second = [&](int64_t count) { return static_cast<double>(count) / seconds; };
  json.update({{"samples", samples},
               {"seconds", seconds},
               {"samples_s", per_second(samples)},
               {"mb_s", 1e-6 * per_second(bytes)},
               {"busy", reads.seconds() / (seconds * static_cast<double>(loading.threads))}});
  if (store) {
    json["stored_mb_s"] = 1e-6 * per_second(files.bytes - opening_bytes);
    json["decoding"] = 1.0 - (files.seconds() - opening_s) / reads.seconds();
  }
  return json;
}

}  // namespace

Json time_reading(const DataBenchOptions& options, const std::function<void(const Json&)>& visit) {
  const auto store = app::open_store(options.config);
  Json results = Json::array();
  const auto add = [&](const char* name) {
    results.push_back(read_once(options, name));
    visit(results.back());
  };
  if (store) {
    drop_page_cache(store->name());
    add("cold");
  }
  add("warm");
  return results;
}

}  // namespace aifs::bench
