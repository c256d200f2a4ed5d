// SPDX-License-Identifier: Apache-2.0
#include "bench/decode.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>

#include "app/data_tools/read_rates.h"
#include "app/run/data_parts.h"
#include "app/run/device.h"
#include "app/run/make_data.h"
#include "bench/device_clock.h"
#include "bench/median.h"
#include "core/check.h"
#include "core/seconds_since.h"
#include "data/loader/row_decoder.h"

namespace aifs::bench {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using Rows = std::vector<int64_t>;  // of one sample

double ms_since(Clock::time_point start) {
  return 1e3 * seconds_since(start);
}

// The data, and the samples that are decoded.
struct Work {
  app::DataParts parts;
  std::vector<int64_t> offsets, anchors;
  c10::Device device;
  std::shared_ptr<data::BufferPool> pool;

  const data::SampleSource& source() const { return parts.training_source; }
  Rows rows_of(int64_t anchor) const {
    Rows rows;
    for (const int64_t offset : offsets)
      rows.push_back(anchor + offset);
    return rows;
  }
};

Work make_work(const DecodeOptions& options) {
  const app::RunConfig& config = options.config;
  app::require_one_dataset(config, "decoding is measured for one dataset at a time",
                           "name it in data.dataset");
  Work work{.parts = app::make_data(config, app::open_stores(config)),
            .offsets = {},
            .anchors = {},
            .device = options.device,
            .pool = std::make_shared<data::BufferPool>(options.device)};
  const auto most = static_cast<size_t>(options.batches);
  for (const data::BatchRequest& request : app::first_requests(config, work.parts, most)) {
    work.offsets = request.offsets;
    work.anchors.insert(work.anchors.end(), request.anchors.begin(), request.anchors.end());
  }
  return work;
}

bool same_bits(const at::Tensor& device, const at::Tensor& host) {
  return device.cpu().view(at::kInt).equal(host.contiguous().view(at::kInt));
}

Json check(const Work& work) {
  data::RowDecoder decoder(work.source(), work.device, work.pool);
  const data::LoaderOptions loading{.nodes = {0, work.parts.training->info().num_nodes()}};
  bool identical = true;
  for (const int64_t anchor : work.anchors) {
    decoder.open(work.rows_of(anchor));
    decoder.read(/*threads=*/1);
    decoder.parse();
    decoder.copy();
    decoder.decode();
    decoder.place();
    app::wait_for(work.device);
    decoder.check();
    const data::Batch batch =
        data::read_batch(work.source(), loading, {.anchors = {anchor}, .offsets = work.offsets});
    identical = identical && same_bits(decoder.cells(), batch.values[0]);
    if (batch.nan_mask.defined())
      identical = identical && decoder.nan_mask().cpu().equal(batch.nan_mask[0]);
  }
  return {{"case", "check"}, {"samples", work.anchors.size()}, {"identical", identical}};
}

// Times the steps of each of `units`, rows that are decoded together.
Json time_steps_of(const Work& work, const char* name, const std::vector<Rows>& units,
                   int64_t threads) {
  data::RowDecoder decoder(work.source(), work.device, work.pool);
  std::map<std::string, std::vector<double>> ms;
  for (size_t i = 0; i <= units.size(); ++i) {
    const Rows& rows = units[i == 0 ? 0 : i - 1];  // the first one is only to allocate memory
    decoder.open(rows);
    Clock::time_point start = Clock::now();
    decoder.read(threads);
    const double read_ms = ms_since(start);
    start = Clock::now();
    decoder.parse();
    const double parse_ms = ms_since(start);
    DeviceClock clock(work.device);
    clock.mark();
    decoder.copy();
    clock.mark();
    decoder.decode();
    clock.mark();
    decoder.place();
    clock.mark();
    const std::vector<double> device_ms = clock.intervals_ms();
    decoder.check();
    if (i == 0) continue;
    ms["read_ms"].push_back(read_ms);
    ms["parse_ms"].push_back(parse_ms);
    ms["copy_ms"].push_back(device_ms[0]);
    ms["lz4_ms"].push_back(device_ms[1]);
    ms["fields_ms"].push_back(device_ms[2]);
  }
  constexpr double kMiB = 1048576.0;
  Json json{{"case", name}, {"threads", threads}, {"dates", units.front().size()}};
  for (const char* step : {"read_ms", "parse_ms", "copy_ms", "lz4_ms", "fields_ms"})
    json[step] = median(ms[step]);
  json.update({{"encoded_mib", static_cast<double>(decoder.encoded_bytes()) / kMiB},
               {"decoded_mib", static_cast<double>(decoder.decoded_bytes()) / kMiB},
               {"streams", decoder.num_streams()},
               {"raw_streams", decoder.num_raw_streams()}});
  return json;
}

// A sample on its way: read while the other one is decoded.
struct Slot {
  explicit Slot(const Work& work) : decoder(work.source(), work.device, work.pool) {}

  data::RowDecoder decoder;
  std::optional<c10::Event> done = {};
  bool is_used = false;

  // Returns when the device has decoded what is in it.
  void finish() {
    if (done) done->synchronize();
    if (is_used) decoder.check();
    is_used = false;
  }
};

Json time_pipeline(const Work& work, int64_t threads) {
  constexpr size_t kLeadIn = 2;  // samples that are not timed: they allocate memory
  c10::OptionalStreamGuard on_side_stream;
  std::optional<c10::Stream> stream;
  if (!work.device.is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(work.device.type());
    stream = guard.getStreamFromGlobalPool(work.device);
    on_side_stream.reset_stream(*stream);
  }
  std::deque<Slot> slots;
  for (int i = 0; i < 2; ++i)
    slots.emplace_back(work);
  Clock::time_point start;
  double read_ms = 0.0;
  for (size_t i = 0; i < kLeadIn + work.anchors.size(); ++i) {
    if (i == kLeadIn) {
      for (Slot& slot : slots)
        slot.finish();
      start = Clock::now();
    }
    Slot& slot = slots[i % slots.size()];
    slot.finish();
    const Clock::time_point read_start = Clock::now();
    slot.decoder.open(work.rows_of(work.anchors[i % work.anchors.size()]));
    slot.decoder.read(threads);
    if (i >= kLeadIn) read_ms += ms_since(read_start);
    slot.decoder.parse();
    slot.decoder.copy();
    slot.decoder.decode();
    slot.decoder.place();
    slot.is_used = true;
    if (!stream) continue;
    slot.done.emplace(work.device.type());
    slot.done->record(*stream);
  }
  for (Slot& slot : slots)
    slot.finish();
  const double seconds = 1e-3 * ms_since(start);
  return {{"case", "pipeline"},
          {"threads", threads},
          {"samples", work.anchors.size()},
          {"seconds", seconds},
          {"samples_s", static_cast<double>(work.anchors.size()) / seconds},
          {"read_share", 1e-3 * read_ms / seconds}};
}

}  // namespace

Json time_decoding(const DecodeOptions& options, const std::function<void(const Json&)>& visit) {
  const Work work = make_work(options);
  std::vector<Rows> samples, dates;
  for (const int64_t anchor : work.anchors) {
    samples.push_back(work.rows_of(anchor));
    for (const int64_t row : samples.back())
      dates.push_back({row});
  }
  Json results = Json::array();
  const auto add = [&](Json result) {
    results.push_back(std::move(result));
    visit(results.back());
  };
  add(check(work));
  for (const int64_t threads : options.threads) {
    add(time_steps_of(work, "date", dates, threads));
    add(time_steps_of(work, "sample", samples, threads));
    add(time_pipeline(work, threads));
  }
  return results;
}

std::string decoding_text(const Json& result) {
  const auto number = [&](const char* key) { return result[key].get<double>(); };
  const auto name = result["case"].get<std::string>();
  char text[256];
  if (name == "check") {
    std::snprintf(text, sizeof text, "check    %.0f samples: %s", number("samples"),
                  result["identical"].get<bool>() ? "the bits of the CPU" : "OTHER BITS");
  } else if (name == "pipeline") {
    std::snprintf(text, sizeof text,
                  "pipeline %2.0f threads %8.2f samples/s, reading %.0f %% of the time",
                  number("threads"), number("samples_s"), 100.0 * number("read_share"));
  } else {
    std::snprintf(text, sizeof text,
                  "%-8s %2.0f threads: read %.2f ms, parse %.2f, copy %.2f, LZ4 %.2f, fields %.2f "
                  "(%.1f MiB of %.1f, %.0f streams, %.0f of them raw)",
                  name.c_str(), number("threads"), number("read_ms"), number("parse_ms"),
                  number("copy_ms"), number("lz4_ms"), number("fields_ms"), number("encoded_mib"),
                  number("decoded_mib"), number("streams"), number("raw_streams"));
  }
  return text;
}

}  // namespace aifs::bench
