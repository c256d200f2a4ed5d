// SPDX-License-Identifier: Apache-2.0
#include "data/tools/synth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>
#include <span>

#include "core/check.h"
#include "core/file_io.h"
#include "core/run_on_threads.h"
#include "core/time.h"
#include "data/fields/moments.h"
#include "data/tools/position_values.h"
#include "data/tools/store_parts.h"
#include "data/zarr/array_writer.h"

namespace aifs::data {

namespace {

using zarr::Json;

// Noise in [-1, 1) that depends on its arguments only (the finaliser of MurmurHash3).
float noise(uint64_t key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdULL;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53ULL;
  key ^= key >> 33;
  return static_cast<float>(static_cast<double>(key >> 40) * 0x1p-23 - 1.0);
}

void wave_field(const SynthOptions& o, int64_t date, int64_t variable, int64_t member,
                std::span<float> out) {
  constexpr double kRadians = std::numbers::pi / 180.0;
  const auto v = static_cast<double>(variable), t = static_cast<double>(date);
  const auto k = static_cast<double>(1 + variable % 7), m = static_cast<double>(1 + variable % 5);
  const auto scale = static_cast<double>(1 + variable % 4);
  const auto offset = static_cast<double>(variable % 3 * 10);
  const uint64_t key =
      (static_cast<uint64_t>(date) * 4096 + static_cast<uint64_t>(variable * 64 + member)) << 28;
  for (size_t n = 0; n < out.size(); ++n) {
    const double lat = o.latitudes_deg[n] * kRadians, lon = o.longitudes_deg[n] * kRadians;
    const double wave =
        std::sin(k * lat + 0.1 * v) * std::cos(m * lon + 0.05 * t + v) +
        0.3 * std::cos((m + 3.0) * lon - 0.1 * t + static_cast<double>(member)) * std::cos(lat);
    out[n] = static_cast<float>((wave + 0.02 * noise(key + n)) * scale + offset);
  }
}

Json root_attributes(const SynthOptions& o, const zarr::ArraySettings& fields,
                     const std::vector<int64_t>& dates_s) {
  Json json = store_attributes({.attribution = "synthetic",
                                .description = "synthetic values, written by aifs-train data synth",
                                .licence = "CC0-1.0",
                                .variables = o.variables,
                                .dates_s = dates_s,
                                .frequency_s = o.frequency_s,
                                .members = o.members,
                                .cells = static_cast<int64_t>(o.latitudes_deg.size()),
                                .field_shape = o.field_shape,
                                .resolution = o.resolution},
                               fields);
  if (o.values == SynthValues::kPosition) json[kSyntheticAttribute] = kPositionValues;
  return json;
}

zarr::ArraySettings field_settings(const SynthOptions& o) {
  const auto cells = static_cast<int64_t>(o.latitudes_deg.size());
  const auto variables = static_cast<int64_t>(o.variables.size());
  zarr::ArraySettings s{.format = o.format,
                        .shape = {o.num_dates, variables, o.members, cells},
                        .chunks = {std::min(o.dates, o.num_dates), variables, 1,
                                   (cells + o.cell_chunks - 1) / o.cell_chunks},
                        .compression = o.compression};
  s.fill.real = std::numeric_limits<double>::quiet_NaN();
  s.attributes = Json{{"_ARRAY_DIMENSIONS", {"time", "variable", "ensemble", "cell"}}};
  if (o.shard_dates > 0) {
    s.shards = {o.shard_dates, variables, o.members,
                (cells + s.chunks[3] - 1) / s.chunks[3] * s.chunks[3]};
  }
  return s;
}

// The fields of a date, variable after variable.
void fields_of_date(const SynthOptions& o, int64_t date, std::span<float> out) {
  const size_t cells = o.latitudes_deg.size();
  for (size_t v = 0; v < o.variables.size(); ++v) {
    for (int64_t e = 0; e < o.members; ++e) {
      const size_t field = v * static_cast<size_t>(o.members) + static_cast<size_t>(e);
      synthetic_field(o, date, static_cast<int64_t>(v), e, out.subspan(field * cells, cells));
    }
  }
}

void write_fields(const SynthOptions& o, const zarr::ArrayWriter& writer, ProgressSink* progress) {
  const std::vector<int64_t> counts = writer.num_files();
  const std::vector<int64_t>& shape = writer.files().shape();
  const int64_t rows = writer.files().chunk_shape()[0];
  const int64_t row_items = shape[1] * shape[2] * shape[3];
  if (progress) progress->start("fields", shape[0], "dates");
  run_on_threads(counts[0], threads_for(o.threads, 8 * rows * row_items), [&](int64_t group) {
    thread_local zarr::WriteScratch scratch;
    zarr::ItemBlock block{zarr::Region::whole(shape), {}, {}};
    block.region.begin[0] = group * rows;
    block.region.end[0] = std::min((group + 1) * rows, shape[0]);
    std::vector<float> items(static_cast<size_t>(block.region.num_items()));
    for (int64_t date = block.region.begin[0]; date < block.region.end[0]; ++date) {
      fields_of_date(
          o, date,
          std::span(items).subspan(static_cast<size_t>((date - block.region.begin[0]) * row_items),
                                   static_cast<size_t>(row_items)));
    }
    block.items = std::as_bytes(std::span(items));
    zarr::ChunkGrid(shape, writer.files().chunk_shape())
        .for_each_part(block.region, [&](const zarr::ChunkPart& part) {
          writer.write(part.chunk, block, scratch);
        });
    if (progress)
      progress->add(block.region.end[0] - block.region.begin[0],
                    static_cast<int64_t>(block.items.size()));
  });
  if (progress) progress->finish();
}

void check_options(const std::string& to, const SynthOptions& o) {
  AIFS_CHECK(!o.latitudes_deg.empty() && o.latitudes_deg.size() == o.longitudes_deg.size());
  AIFS_CHECK(o.num_dates >= 1 && o.members >= 1 && o.dates >= 1 && o.cell_chunks >= 1);
  std::error_code error;
  if (path_exists(to) && !(folder_exists(to) && fs::is_empty(to, error))) {
    throw ConfigError("", concat("'", to, "' is there already"),
                      "name a new folder, or remove this one");
  }
  if (o.cell_chunks > static_cast<int64_t>(o.latitudes_deg.size()))
    throw ConfigError("--cell-chunks", concat("there are ", o.latitudes_deg.size(), " cells"));
}

}  // namespace

std::vector<std::string> usual_variables(int64_t count) {
  std::vector<std::string> names{"10u", "10v", "2d", "2t", "msl", "skt", "sp", "tcw", "tp", "cp"};
  for (const char* parameter : {"q", "t", "u", "v", "w", "z"}) {
    for (const int level : {50, 100, 150, 200, 250, 300, 400, 500, 600, 700, 850, 925, 1000})
      names.push_back(concat(parameter, "_", level));
  }
  for (int64_t i = 1; static_cast<int64_t>(names.size()) < count; ++i)
    names.push_back(concat("x", i));
  names.resize(static_cast<size_t>(count));
  return names;
}

void synthetic_field(const SynthOptions& options, int64_t date, int64_t variable, int64_t member,
                     std::span<float> out) {
  if (options.values == SynthValues::kWaves)
    return wave_field(options, date, variable, member, out);
  const auto cells = static_cast<int64_t>(out.size());
  const int64_t variables = options.variables.empty()
                                ? options.num_variables
                                : static_cast<int64_t>(options.variables.size());
  const int64_t first = ((date * variables + variable) * options.members + member) * cells;
  for (int64_t n = 0; n < cells; ++n)
    out[static_cast<size_t>(n)] = position_value(first + n);
}

void write_synthetic(const std::string& to, const SynthOptions& given, ProgressSink* progress) {
  SynthOptions o = given;
  if (o.variables.empty()) o.variables = usual_variables(o.num_variables);
  check_options(to, o);
  const fs::path folder = to, build = folder / kBuildFolder, staging = build / "staging";
  const zarr::ArraySettings fields = field_settings(o);
  const zarr::ArrayWriter writer(folder, "data", fields, staging);
  make_directories(staging);
  for (const auto& [key, json] : zarr::group_metadata(o.format, Json::object()))
    zarr::write_staged_json(staging, build / key, json);
  std::vector<int64_t> dates_s;
  for (int64_t t = 0; t < o.num_dates; ++t)
    dates_s.push_back(o.start_s + t * o.frequency_s);
  write_fields(o, writer, progress);
  writer.write_metadata();
  const VectorWriter vectors(folder, o.format, staging);
  vectors.write_dates(dates_s);
  vectors.write_cells(o.latitudes_deg, o.longitudes_deg);
  const StatisticsWindow window{0, o.num_dates, {}, {1}};
  const FieldsOfRow shape{static_cast<int64_t>(o.variables.size()),
                          o.members * static_cast<int64_t>(o.latitudes_deg.size())};
  const ComputedStatistics statistics = compute_statistics<float>(
      window, shape, [&](int64_t date, std::span<float> out) { fields_of_date(o, date, out); },
      o.threads, progress);
  vectors.write_statistics("", statistics.all);
  if (o.num_dates > 1)
    vectors.write_statistics(concat("statistics_tendencies_", format_duration(o.frequency_s), "_"),
                             statistics.tendencies.front());
  for (const auto& [key, json] :
       zarr::group_metadata(o.format, root_attributes(o, fields, dates_s)))
    zarr::write_staged_json(staging, folder / key, json);
  zarr::sync_store(folder);
  std::error_code error;
  fs::remove_all(build, error);
  if (error) throw Error(concat("cannot remove '", build.string(), "': ", error.message()));
}

}  // namespace aifs::data
