// SPDX-License-Identifier: Apache-2.0
// The same values are the same data: whatever the form of the store and the way in which a
// configuration puts them together, runs have the same bits, on any number of threads.
#include <cstdlib>
#include <fstream>

#include "data/sources/anemoi_dataset.h"
#include "tests/app/ranks.h"
#include "tests/support/full_reference.h"
#include "tests/support/zarr_v3_writer.h"
#include "tests/support/zip_writer.h"

using namespace aifs;
using namespace aifs::test;

namespace {

// All files below a folder, by their path in it.
std::map<std::string, std::string> files_below(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder).generic_string()] = read_file(entry.path());
  }
  return files;
}

// base.zarr (format 2) and v3_shard.zarr of the same values, and others made of them.
class Forms {
 public:
  Forms() : options_(unmeasured_cells(folder_)) {
    const auto base = data::open_store(path("base.zarr"));
    const zarr::Array data(base, "data");
    const int64_t width = data.meta().shape[1];
    write_to_folder(*to_format_3(base, {1, width, 1, data.meta().shape[3]}), path("v3.zarr"));
    write_to_folder(*to_format_3(base, {1, width, 1, 171}), path("v3_cells.zarr"));
    write_to_folder(*to_format_3(base, {5, 7, 1, 200}), path("v3_odd.zarr"));
    zip("base.zarr", "base.zarr.zip", {});
    zip("v3_shard.zarr", "shard.zip", {.deflated = true, .zip64 = true});
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  const TemporaryFolder& folder() const { return folder_; }
  // Options of a run on a dataset: JSON, where @ stands for the folder.
  std::string on(std::string dataset, int threads) const {
    for (size_t at = dataset.find('@'); at != std::string::npos; at = dataset.find('@'))
      dataset.replace(at, 1, folder_.path().string() + "/");
    return concat(kThreeSteps, options_, " --set 'data.dataset=", dataset,
                  "' --set data.threads=", threads, " ");
  }

 private:
  void zip(const std::string& store, const std::string& name, const ZipStyle& style) const {
    std::ofstream(path(name), std::ios::binary) << zip_bytes(files_below(path(store)), style);
  }

  TemporaryFolder folder_;
  std::string options_;
};

}  // namespace

TEST_CASE("runs on a store in any form have the same bits, on 1, 3 and 8 threads",
          "[dataset_forms]") {
  const Forms forms;
  const fs::path wanted = forms.folder().path() / "wanted";
  REQUIRE(run_train(wanted, forms.on("\"@base.zarr\"", 1)).exit_code == 0);
  REQUIRE(losses_of(wanted).size() == 3);
  int number = 0;
  const std::vector<std::pair<int, std::vector<std::string>>> stores{
      {1, {"v3_cells.zarr", "shard.zip"}},
      {3,
       {"base.zarr", "v3_shard.zarr", "v3.zarr", "v3_cells.zarr", "v3_odd.zarr", "base.zarr.zip",
        "shard.zip"}},
      {8, {"base.zarr", "v3_shard.zarr", "v3_cells.zarr", "base.zarr.zip"}}};
  for (const auto& [threads, names] : stores) {
    for (const std::string& store : names) {
      INFO(store << " on " << threads << " threads");
      const fs::path dir = forms.folder().path() / concat("run", ++number);
      const auto result = run_train(dir, forms.on(concat("\"@", store, "\""), threads));
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      require_same_bits(dir, wanted);
    }
  }
}

TEST_CASE("runs on datasets that are put together again have the same bits", "[dataset_forms]") {
  const Forms forms;
  const fs::path wanted = forms.folder().path() / "wanted";
  REQUIRE(run_train(wanted, forms.on("\"@base.zarr\"", 2)).exit_code == 0);
  const std::string first = R"({"dataset": "@base.zarr", "end": "2020-01-02T18:00:00"})";
  const std::string second = R"({"dataset": "@v3.zarr", "start": "2020-01-03"})";
  int number = 0;
  for (const std::string& dataset : std::vector<std::string>{
           concat("[", first, ", ", second, "]"),
           concat(R"({"concat": [)", first, ", ", second, "]}"),
           R"({"join": ["@base.zarr", {"dataset": "@v3_cells.zarr", "select": ["sst", "2t"]}]})",
           R"({"dataset": {"dataset": "@shard.zip"}, "drop": []})",
           R"({"dataset": {"dataset": "@base.zarr", "rename": {"2t": "t2m"}},
               "rename": {"t2m": "2t"}})",
           R"({"dataset": "@base.zarr", "rescale": {"2t": [1, 0]}, "area": [90, 0, -90, 360]})"}) {
    INFO(dataset);
    const fs::path dir = forms.folder().path() / concat("run", ++number);
    const auto result = run_train(dir, forms.on(dataset, 3));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    require_same_bits(dir, wanted);
  }
}

TEST_CASE("runs on cutouts, thinned, complemented and interpolated data train", "[dataset_forms]") {
  const Forms forms;
  int number = 0;
  for (const char* dataset :
       {R"({"cutout": [{"dataset": "@base.zarr", "area": [60, 0, 20, 60]}, "@v3.zarr"],
            "min_distance_km": 0, "statistics": "@base.zarr"})",
        R"({"dataset": "@base.zarr.zip", "thinning": 2, "fill_missing_dates": "interpolate"})",
        R"({"complement": {"dataset": "@base.zarr", "thinning": 2, "drop": ["2t"]},
            "source": {"dataset": "@v3.zarr", "select": ["2t"]}, "interpolation": "nearest"})",
        R"({"dataset": "@base.zarr", "interpolate_frequency": "3h", "frequency": null})"}) {
    INFO(dataset);
    const fs::path dir = forms.folder().path() / concat("run", ++number);
    std::string more = forms.on(dataset, 3) + "--set data.training.end=2020-01-03 ";
    if (number == 4) more += "--set data.timestep=3h ";
    const auto result = run_train(dir, more + "--set train.validation.every_epochs=0 ");
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    REQUIRE(losses_of(dir).size() == 3);
    for (const double loss : losses_of(dir))
      REQUIRE(std::isfinite(loss));
  }
}

TEST_CASE("mistakes in a dataset are named with their place, and a missing store with its name",
          "[dataset_forms]") {
  const Forms forms;
  const auto fails = [&](const std::string& dataset, int code, const std::string& words) {
    const auto result = run_train(forms.folder().path() / "fails", forms.on(dataset, 1));
    INFO(result.err);
    REQUIRE(result.exit_code == code);
    REQUIRE_THAT(result.err, ContainsSubstring(words));
  };
  fails(R"({"join": ["@base.zarr", {"dataset": "@v3.zarr", "colour": 1}]})", 2,
        "data.dataset.join.1.colour");
  fails(R"({"join": ["@base.zarr", {"dataset": "@v3.zarr", "end": "2020-01-02"}]})", 2,
        "'data.dataset.join'");
  fails(R"({"join": ["@base.zarr", "@nowhere.zarr"]})", 3, "nowhere.zarr");
  fails(R"({"zip": ["@base.zarr", "@v3.zarr"]})", 2, "data.dataset.zip");
}

TEST_CASE("SPEEDY in other forms gives the same bits", "[dataset_forms][full_reference]") {
  const fs::path shared = full_reference();
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  REQUIRE(run_command(concat("tar -xf '", (shared / "datasets/speedy.tar").string(), "' -C '",
                             folder.path().string(), "'"))
              .exit_code == 0);
  ::setenv("AIFS_SPEEDY", path("speedy.zarr").c_str(), 1);
  write_to_folder(*to_format_3(data::open_store(path("speedy.zarr")), {3, 33, 1, 1000}),
                  path("cells.zarr"));
  std::ofstream(path("speedy.zip"), std::ios::binary)
      << zip_bytes(files_below(path("speedy.zarr")), {});
  const std::string config = (source_folder() / "configs/speedy.json").string();
  const auto train = [&](const std::string& store, int threads) {
    const fs::path dir = folder.path() / ("of_" + store);
    const auto result = run_train(
        dir,
        concat("--set run.device=cpu --set train.max_steps=2 --set checkpoint.every_steps=0 "
               "--set train.validation.every_epochs=0 --set data.dataset='",
               path(store), "' --set data.threads=", threads, " "),
        config);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return dir;
  };
  const fs::path wanted = train("speedy.zarr", 1);
  for (const char* store : {"cells.zarr", "speedy.zip"}) {
    INFO(store);
    require_same_bits(train(store, 3), wanted, "checkpoints/step-00000002");
  }
}

#ifdef AIFS_HAVE_MPI
TEST_CASE("two ranks that share samples read any form alike", "[dataset_forms]") {
  const Forms forms;
  const std::string shared = "--set parallel.model=2 ";
  const fs::path wanted =
      train_ranks(forms.folder(), 2, "wanted", forms.on("\"@base.zarr\"", 1) + shared);
  int number = 0;
  for (const auto& [dataset, threads] :
       {std::pair(R"("@v3_shard.zarr")", 3), std::pair(R"("@v3_cells.zarr")", 8),
        std::pair(R"("@base.zarr.zip")", 3), std::pair(R"("@shard.zip")", 1),
        std::pair(R"({"join": ["@base.zarr", {"dataset": "@v3.zarr", "select": ["sst"]}]})", 3)}) {
    INFO(dataset);
    const fs::path dir = train_ranks(forms.folder(), 2, concat("run", ++number),
                                     forms.on(dataset, threads) + shared);
    require_same_bits(dir, wanted);
  }
  // Equals one rank but for the order of sums.
  const fs::path alone = forms.folder().path() / "alone";
  REQUIRE(run_train(alone, forms.on("\"@base.zarr.zip\"", 2)).exit_code == 0);
  require_alike(wanted, alone, "fp32");
}
#endif
