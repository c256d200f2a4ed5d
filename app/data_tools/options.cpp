// SPDX-License-Identifier: Apache-2.0
#include "app/data_tools/options.h"

#include <CLI/CLI.hpp>

#include "app/data_tools/cli_checks.h"

namespace aifs::app {

namespace {

using Kind = DataCommand::Kind;

constexpr const char* kCodecs =
    "blosc-lz4, blosc-lz4hc, blosc-zstd, blosc-zlib, blosc-blosclz, zstd or none";

constexpr const char* kDataFooter = R"(Examples
  aifs-train data info era5.zarr
  aifs-train data check era5.zarr --json > report.json
  aifs-train data stats era5.zarr --end 2020 --tendencies 6h,1d --write
  aifs-train data reshape era5.zarr new.zarr --format 3 --cell-chunks 8 --shard-dates 1
  aifs-train data synth test.zarr --grid n320 --num-variables 100 --num-dates 40 --values waves
  aifs-train data bench new.zarr --threads 1,8,16

Exit code 3: something is wrong with the data.)";

class Commands {
 public:
  Commands(CLI::App& data, DataCommand& command) : data_(data), c_(command) {}

  CLI::App& add(const char* name, const char* what, Kind kind) {
    CLI::App* app = data_.add_subcommand(name, what);
    app->callback([this_command = &c_, kind] { this_command->kind = kind; });
    return *app;
  }
  void store(CLI::App& app) {
    app.add_option("STORE", c_.store, "folder of an Anemoi dataset")->required();
  }
  void threads(CLI::App& app) {
    app.add_option("--threads", c_.threads, "0: as many as there are cores")->check(at_least(0));
  }
  void json(CLI::App& app) { app.add_flag("--json", c_.json, "print JSON"); }
  void layout(CLI::App& app) {
    app.add_option("--dates", c_.dates, "dates of a chunk")->check(at_least(1));
    app.add_option("--cell-chunks", c_.cell_chunks, "chunks along the cells")->check(at_least(1));
    app.add_option("--shard-dates", c_.shard_dates, "dates of a shard (format 3)")
        ->check(at_least(1));
    app.add_option("--codec", c_.codec, kCodecs);
    app.add_option("--level", c_.level, "how hard the codec tries")->check(at_least(0));
    app.add_option("--format", c_.format, "of Zarr")->check(CLI::IsMember({2, 3}));
  }

 private:
  CLI::App& data_;
  DataCommand& c_;
};

void add_reshape(Commands& commands, DataCommand& c) {
  CLI::App& reshape = commands.add(
      "reshape", "write a store again with other chunks, codec or format; goes on if interrupted",
      Kind::kReshape);
  commands.store(reshape);
  reshape.add_option("TO", c.to, "new folder, usually named *.zarr")->required();
  commands.layout(reshape);
  reshape.add_option("--cells", c.cells, "cells of a chunk")->check(at_least(1));
  reshape.add_option("--shard-cells", c.shard_cells, "cells of a shard (format 3)")
      ->check(at_least(1));
  reshape.add_flag("--consolidated", c.consolidated,
                   "also write the metadata of all arrays into one file");
  commands.threads(reshape);
}

void add_synth(Commands& commands, DataCommand& c) {
  CLI::App& synth = commands.add(
      "synth", "write a store whose values say which date, variable and cell they are of",
      Kind::kSynth);
  synth.add_option("TO", c.to, "new folder, usually named *.zarr")->required();
  synth.add_option("--grid", c.grid, "Gaussian grid such as o96, n320, f32")->capture_default_str();
  synth.add_option("--num-variables", c.num_variables, "how many, with usual names")
      ->check(at_least(1))
      ->capture_default_str();
  synth.add_option("--variables", c.variables, "their names instead")->delimiter(',');
  synth.add_option("--num-dates", c.num_dates, "how many")
      ->check(at_least(1))
      ->capture_default_str();
  synth.add_option("--members", c.members, "of an ensemble")
      ->check(at_least(1))
      ->capture_default_str();
  synth.add_option("--start", c.start, "first date; 2020-01-01");
  synth.add_option("--frequency", c.frequency, "time between dates")->capture_default_str();
  synth
      .add_option("--values", c.values,
                  "position: of the item in the array, modulo 16777213; waves: smooth fields "
                  "that compress as real ones do")
      ->check(CLI::IsMember({"position", "waves"}))
      ->capture_default_str();
  commands.layout(synth);
  commands.threads(synth);
}

void add_bench(Commands& commands, DataCommand& c) {
  CLI::App& bench = commands.add(
      "bench", "how fast training would read a store: from disk, from memory, by threads",
      Kind::kBench);
  commands.store(bench);
  bench.add_option("--threads", c.readers, "numbers of reader threads, one pass each")
      ->delimiter(',')
      ->check(at_least(1));
  bench.add_option("--batches", c.batches, "samples to read")
      ->check(at_least(1))
      ->capture_default_str();
  bench.add_option("--cells", c.share, "share of the cells that is read")
      ->check(CLI::Range(1e-6, 1.0));
  bench.add_option("--variables", c.variables, "read only these")->delimiter(',');
  bench.add_flag("--warm-only", c.warm_only, "no pass from disk");
  bench.add_option("--device", c.device, "where samples go: cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
  commands.json(bench);
}

}  // namespace

CLI::App* add_data_commands(CLI::App& app, DataCommand& c) {
  CLI::App* data =
      app.add_subcommand("data", "look at datasets on disk, check, copy and measure them");
  data->require_subcommand(1);
  data->footer(kDataFooter);
  Commands commands(*data, c);
  CLI::App& info = commands.add("info", "what is in a store", Kind::kInfo);
  commands.store(info);
  commands.json(info);
  CLI::App& check = commands.add(
      "check", "decode every chunk, look at every value; exit code 3 if anything is wrong",
      Kind::kCheck);
  commands.store(check);
  check
      .add_option("--margin", c.margin,
                  "outliers are so many ranges beyond the stored minimum or maximum")
      ->check(CLI::Range(0.0, 1e30))
      ->capture_default_str();
  commands.threads(check);
  commands.json(check);
  CLI::App& stats = commands.add(
      "stats", "statistics and tendencies as anemoi-datasets computes them", Kind::kStats);
  commands.store(stats);
  stats.add_option("--start", c.start, "first date; that of the store's own statistics");
  stats.add_option("--end", c.end, "last date; that of the store's own statistics");
  stats
      .add_option("--tendencies", c.tendencies,
                  "over these times, such as 6h,1d, or none; those that the store has")
      ->delimiter(',');
  stats.add_flag("--write", c.write, "put them into the store");
  commands.threads(stats);
  commands.json(stats);
  add_reshape(commands, c);
  add_synth(commands, c);
  add_bench(commands, c);
  return data;
}

}  // namespace aifs::app
