// SPDX-License-Identifier: Apache-2.0
#include "app/data_tools/commands.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/data_tools/parsed_option.h"
#include "app/data_tools/progress_line.h"
#include "app/data_tools/read_rates.h"
#include "app/run/device.h"
#include "app/run/exit_codes.h"
#include "core/check.h"
#include "core/log.h"
#include "core/time.h"
#include "data/sources/anemoi_dataset.h"
#include "data/tools/reshape.h"
#include "data/tools/store_check.h"
#include "data/tools/store_statistics.h"
#include "data/tools/store_summary.h"
#include "data/tools/synth.h"
#include "graph/nodes/gaussian_grid.h"

namespace aifs::app {

namespace {

using Json = nlohmann::ordered_json;

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

std::optional<zarr::Compression> compression(const DataCommand& c) {
  if (c.codec.empty() && c.level < 0) return std::nullopt;
  if (c.codec.empty()) throw ConfigError("--level", "is of a codec", "name it: --codec NAME");
  return zarr::Compression::parse(c.codec,
                                  c.level < 0 ? std::nullopt : std::optional<int64_t>(c.level));
}

int info(const DataCommand& c) {
  const Json summary = data::summarise_store(data::open_store(c.store));
  print(c.json ? summary.dump(1) + "\n" : data::summary_text(summary));
  return kSuccess;
}

int check(const DataCommand& c) {
  ProgressLine progress;
  const Json report = data::check_store(data::open_store(c.store),
                                        {.margin = c.margin, .threads = c.threads}, &progress);
  print(c.json ? report.dump(1) + "\n" : data::check_text(report));
  return report["sound"].get<bool>() ? kSuccess : kData;
}

// -------------------------------------------------------------------------------------- stats ---

std::string table(const std::vector<std::string>& variables, const data::Statistics& s) {
  size_t width = 8;
  for (const std::string& name : variables)
    width = std::max(width, name.size());
  const int columns = static_cast<int>(std::min<size_t>(width, 100));
  char line[256];
  std::snprintf(line, sizeof line, "%-*s %16s %16s %16s %16s\n", columns, "variable", "mean",
                "stdev", "minimum", "maximum");
  std::string text = line;
  for (size_t v = 0; v < variables.size(); ++v) {
    std::snprintf(line, sizeof line, "%-*.100s %16.9g %16.9g %16.9g %16.9g\n", columns,
                  variables[v].c_str(), s.mean[v], s.stdev[v], s.minimum[v], s.maximum[v]);
    text += line;
  }
  return text;
}

std::string difference_text(const data::StoreStatistics& result, const data::Statistics& computed,
                            const data::Statistics* stored) {
  const auto found =
      stored ? data::largest_difference(result.variables, computed, *stored) : std::nullopt;
  if (!found) return "the store has none\n";
  char text[160];
  std::snprintf(text, sizeof text, "%.2g (%.100s)", found->largest, found->where.c_str());
  return concat("largest relative difference from those of the store: ", text, "\n");
}

std::string statistics_text(const data::StoreStatistics& result) {
  std::string text =
      concat("statistics of ", format_date(result.first_s), " to ", format_date(result.last_s),
             "\n", table(result.variables, result.computed),
             difference_text(result, result.computed, &result.stored));
  for (const auto& [delta_s, statistics] : result.tendencies) {
    const auto stored = result.stored_tendencies.find(delta_s);
    const bool is_there = stored != result.stored_tendencies.end();
    text += concat("\ntendencies over ", format_duration(delta_s), "\n",
                   table(result.variables, statistics),
                   difference_text(result, statistics, is_there ? &stored->second : nullptr));
  }
  return text;
}

Json statistics_json(const data::StoreStatistics& result) {
  const auto to_json = [](const data::Statistics& s) {
    return Json{
        {"mean", s.mean}, {"stdev", s.stdev}, {"minimum", s.minimum}, {"maximum", s.maximum}};
  };
  Json json{{"first", format_date(result.first_s)},
            {"last", format_date(result.last_s)},
            {"variables", result.variables},
            {"statistics", to_json(result.computed)},
            {"tendencies", Json::object()}};
  for (const auto& [delta_s, statistics] : result.tendencies)
    json["tendencies"][format_duration(delta_s)] = to_json(statistics);
  return json;
}

int stats(const DataCommand& c) {
  data::StatisticsOptions options{.start = c.start, .end = c.end, .threads = c.threads};
  if (!c.tendencies.empty()) {
    options.deltas_s.emplace();
    for (const std::string& text : c.tendencies) {
      if (text == "none") continue;
      options.deltas_s->push_back(parsed("--tendencies", [&] { return parse_duration(text); }));
    }
  }
  ProgressLine progress;
  const data::StoreStatistics result =
      data::compute_store_statistics(data::open_store(c.store), options, &progress);
  print(c.json ? statistics_json(result).dump(1) + "\n" : statistics_text(result));
  if (c.write) {
    data::write_statistics(c.store, result);
    log::info("wrote them into '", c.store, "'");
  }
  return kSuccess;
}

// ------------------------------------------------------------------------------------ writing ---

int reshape(const DataCommand& c) {
  data::ReshapeOptions options{.dates = c.dates,
                               .cells = c.cells,
                               .cell_chunks = c.cell_chunks,
                               .shard_dates = c.shard_dates,
                               .shard_cells = c.shard_cells,
                               .compression = compression(c),
                               .consolidated = c.consolidated,
                               .threads = c.threads};
  if (c.format > 0) options.format = c.format;
  ProgressLine progress;
  const data::ReshapeResult result =
      data::reshape_store(data::open_store(c.store), c.to, options, &progress);
  if (result.reused > 0)
    log::info(result.reused, " files were there already, from a copy that was interrupted");
  if (result.rewritten > 0)
    log::warning(result.rewritten, " files were not what was written and were written again");
  log::info("wrote '", c.to, "': ", result.files, " files of fields, each read back and compared");
  return kSuccess;
}

int synth(const DataCommand& c) {
  data::SynthOptions options;
  options.resolution = c.grid;
  const graph::Coordinates grid = graph::gaussian_coordinates(
      parsed("--grid", [&] { return graph::parse_gaussian_grid(c.grid); }));
  options.latitudes_deg = grid.lat_deg;
  options.longitudes_deg = grid.lon_deg;
  options.variables = c.variables;
  options.num_variables = c.num_variables;
  options.num_dates = c.num_dates;
  options.members = c.members;
  if (!c.start.empty()) options.start_s = parsed("--start", [&] { return parse_date(c.start); });
  options.frequency_s = parsed("--frequency", [&] { return parse_duration(c.frequency); });
  if (options.frequency_s < 1) throw ConfigError("--frequency", "must be positive");
  if (c.values == "waves") options.values = data::SynthValues::kWaves;
  options.format = c.format > 0 ? c.format : 2;
  options.dates = std::max<int64_t>(c.dates, 1);
  options.cell_chunks = std::max<int64_t>(c.cell_chunks, 1);
  options.shard_dates = c.shard_dates;
  if (const auto chosen = compression(c)) options.compression = *chosen;
  options.threads = c.threads;
  ProgressLine progress;
  data::write_synthetic(c.to, options, &progress);
  log::info("wrote '", c.to, "'");
  return kSuccess;
}

// -------------------------------------------------------------------------------------- bench ---

int bench(const DataCommand& c) {
  RunConfig config;
  config.data.dataset.dataset = c.store;
  config.data.dataset.select = c.variables;
  config.data.normalizer.default_method = data::NormMethod::kNone;
  const data::AnemoiDataset dataset(config.data.dataset);
  config.data.timestep = format_duration(dataset.info().frequency_s);
  DeviceChoice device = DeviceChoice::kCpu;
  for (const auto& [value, name] : EnumNames<DeviceChoice>::table) {
    if (c.device == name) device = value;
  }
  const Json results = time_reading({.config = config,
                                     .batches = c.batches,
                                     .device = choose_device(device, 0),
                                     .threads = c.readers,
                                     .cells = c.share,
                                     .cold = !c.warm_only},
                                    [&](const Json& result) {
                                      if (c.json) return;
                                      print(reading_text(result) + "\n");
                                      std::fflush(stdout);
                                    });
  if (c.json) print(Json{{"results", results}}.dump(1) + "\n");
  return kSuccess;
}

}  // namespace

int run_data_command(const DataCommand& command) {
  switch (command.kind) {
    case DataCommand::Kind::kInfo:
      return info(command);
    case DataCommand::Kind::kCheck:
      return check(command);
    case DataCommand::Kind::kStats:
      return stats(command);
    case DataCommand::Kind::kReshape:
      return reshape(command);
    case DataCommand::Kind::kSynth:
      return synth(command);
    case DataCommand::Kind::kBench:
      return bench(command);
  }
  return kInternal;
}

}  // namespace aifs::app
