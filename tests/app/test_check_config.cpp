// SPDX-License-Identifier: Apache-2.0
// --check-config finds what a run would fail on, and says what it could not check.
#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_train;

namespace {

std::string set(const std::string& assignment) {
  return concat(" --set '", assignment, "'");
}

struct Checker {
  test::TemporaryFolder folder;

  fs::path file(const std::string& name) const { return folder.path() / name; }

  test::CommandResult check(const std::string& more) const {
    return run_train(file("r"), "--check-config " + more);
  }
  // The output of a check that ends with `code` and says `message` somewhere.
  std::string require(int code, const std::string& more, const std::string& message) const {
    const auto result = check(more);
    INFO(more << "\n" << result.out << result.err);
    REQUIRE(result.exit_code == code);
    REQUIRE_THAT(result.out + result.err, ContainsSubstring(message));
    return result.out + result.err;
  }
};

}  // namespace

TEST_CASE("a sound configuration is called so, and nothing is written", "[check_config]") {
  const Checker c;
  const std::string text = c.require(0, "", "the configuration is sound\n");
  REQUIRE_THAT(text, ContainsSubstring("544 data nodes, 162 hidden nodes, to be built") &&
                         ContainsSubstring("20 training and 12 validation dates") &&
                         ContainsSubstring("device: CPU, fp32"));
  REQUIRE_THAT(text, !ContainsSubstring("not checked"));
  REQUIRE(!fs::exists(c.file("r")));
  REQUIRE_THAT(c.check(set("parallel.model=4")).out, ContainsSubstring("ranks: a multiple of 4"));
}

TEST_CASE("faults of data, losses and layers are found without a graph", "[check_config]") {
  const Checker c;
  c.require(3, set("train.validation.lead_times=[\"240h\"]"), "240h");
  c.require(3, set("data.training.end=2020-01-01T06:00:00"), "no training sample");
  c.require(2, set("loss.variable_weights={\"u_850\":1}"), "u_850");
  const std::string masks = set("loss.scalers=[\"node_weights\", \"variable_mask\"]");
  c.require(2, masks + set("loss.masked_variables=[\"x\"]"), "'loss.masked_variables.0'");
  c.require(0, masks + set("loss.masked_variables=[\"u\", \"ke_850\"]"), "sound");
}

TEST_CASE("faults of the graph are found without building it", "[check_config]") {
  const Checker c;
  c.require(2, set("graph.hidden.refinement=6"), "'graph.hidden.refinement'");
  c.require(2, set("graph.decoder.num_neighbours=163"), "163 neighbours of 162 nodes");
  c.require(2, set("model.edge_attributes=[\"edge_len\"]"),
            "'model.edge_attributes.0': the edges data->hidden of the graph have no attribute");
  const std::string transformer =
      set("model.processor.kind=transformer") + set("model.processor.heads=2") +
      set("model.decoder.kind=transformer") + set("model.decoder.heads=2");
  c.require(0, transformer + set("model.processor.window=161"), "sound");
  c.require(2, transformer + set("model.processor.window=512"),
            "'model.processor.window': is 512, there are only 162 nodes");
}

TEST_CASE("a graph file is read and held against configuration and dataset", "[check_config]") {
  const Checker c;
  const fs::path file = c.file("g.nc");
  const std::string named = set("graph.file=" + file.string());
  c.require(0, named, "to be built");
  REQUIRE(run_train(c.file("made"), named + set("train.max_steps=1")).exit_code == 0);
  c.require(0, named, "162 hidden nodes, from '");
  c.require(2, named + set("graph.decoder.num_neighbours=2"), "'graph.file'");
  c.require(2, named + set("model.hierarchy.meshes=[\"a\", \"b\"]"), "'model.hierarchy.meshes'");
  // A hierarchy needs its file; without the file there is nothing to check it by.
  const std::string meshes =
      set("graph.file=" + c.file("no.nc").string()) + set("model.hierarchy.meshes=[\"a\", \"b\"]");
  c.require(3, meshes, "no.nc' (graph.file) is not on this machine");
  c.require(0, meshes + " --no-data", "not checked: the graph '");
  write_file_atomic(file, "words");
  REQUIRE(c.check(named).exit_code == 3);
  REQUIRE(c.check(named + " --no-data").exit_code == 0);
}

TEST_CASE("the matrix of noise is read and held against the graph", "[check_config]") {
  const Checker c;
  const auto noise = [](const std::string& file) {
    return set("model.processor.kind=graph_transformer") + set("model.processor.heads=2") +
           set("loss.kind=crps") + set("model.ensemble.members=2") +
           set("model.ensemble.noise=conditioning") + set("model.ensemble.noise_matrix=" + file);
  };
  const std::string missing = noise(c.file("no.npz").string());
  c.require(2, missing, "'model.ensemble.noise_matrix'");
  c.require(0, missing + " --no-data", "not checked: the matrix '");
  c.require(2, noise(test::fixture("npz/up_5x2.npz").string()), "5 x 2 where 162 x any");
}

TEST_CASE("a dataset that is not here is an error unless it is left out", "[check_config]") {
  const Checker c;
  const std::string missing =
      set("data.kind=anemoi") + set("data.dataset=" + c.file("d.zarr").string());
  const std::string text =
      c.require(3, missing, "d.zarr' (data.dataset.dataset) is not on this machine");
  REQUIRE_THAT(
      text, ContainsSubstring("sound as far as it was checked") && ContainsSubstring("--no-data"));
  c.require(0, missing + " --no-data", "not checked: the dataset '");
  // Options that need no dataset are checked all the same: a named grid, and the rest of the
  // configuration.
  c.require(2, missing + " --no-data" + set("graph.hidden.refinement=6"),
            "'graph.hidden.refinement'");
  fs::create_symlink("nowhere", c.file("d.zarr"));
  c.require(3, missing, "a link to 'nowhere'");
}

TEST_CASE("weights to start from are found and inspected", "[check_config]") {
  const Checker c;
  const auto from = [&](const std::string& name) {
    return set("init.from=" + c.file(name).string());
  };
  c.require(3, from("old"), "old' (init.from) is not on this machine");
  c.require(0, from("old") + " --no-data", "not checked: the run or checkpoint '");
  write_file_atomic(c.file("old.ckpt"), std::string("PK\x03\x04..."));
  c.require(3, from("old.ckpt"), "a zip archive");
  REQUIRE(run_train(c.file("old"), set("train.max_steps=2")).exit_code == 0);
  c.require(0, from("old"), "step-00000002' is sound");
  fs::remove(c.file("old") / "checkpoints" / "step-00000002" / "parameters.safetensors");
  c.require(3, from("old"), "can be used");
}

TEST_CASE("the run folder is looked at, for what is to be done in it", "[check_config]") {
  const Checker c;
  c.require(0, "--resume", "sound");  // starts afresh
  c.require(3, "--validate-only", "no checkpoint");
  REQUIRE(run_train(c.file("r"), set("train.max_steps=2")).exit_code == 0);
  c.require(2, "", "holds checkpoints of an earlier run");
  c.require(0, "--resume", "step-00000002' is sound");
  c.require(0, "--validate-only", "step-00000002' is sound");
  c.require(2, set("run.dir=" + c.file("r/train.log").string()), "'run.dir'");
  fs::create_symlink("nowhere", c.file("link"));
  c.require(2, set("run.dir=" + c.file("link").string()), "a link to 'nowhere'");
}

TEST_CASE("what the device cannot do is found", "[check_config]") {
  const Checker c;
  c.require(2, set("run.device=cpu") + set("train.precision=tf32"), "'train.precision'");
  c.require(2, set("run.device=cpu") + set("profile.nvtx=true"), "'profile.nvtx'");
}

TEST_CASE("--no-data goes with --check-config only", "[check_config]") {
  const test::TemporaryFolder folder;
  REQUIRE(run_train(folder.path() / "r", "--no-data").exit_code == 2);
}
