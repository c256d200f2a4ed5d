// SPDX-License-Identifier: Apache-2.0
// Runs the conformance program on the small reference cases, and on copies of them that were
// spoilt: the program must be able to fail.
#include "tests/conformance/conformance_program.h"

using namespace aifs;
using test::conformance;
using test::Copy;
using test::counts_of;
using test::require_no_failure;

TEST_CASE("the small reference data are those of their manifest", "[conformance]") {
  const auto manifest =
      nlohmann::json::parse(read_file(test::fixture("golden/MANIFEST.json"))).at("files");
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::fixture("golden"))) {
    if (!entry.is_regular_file() || entry.path().filename() == "MANIFEST.json") continue;
    const std::string name = entry.path().lexically_relative(test::fixture("golden")).string();
    INFO(name);
    REQUIRE(manifest.at(name).at("sha256") == sha256_hex(read_file(entry.path())));
    ++files;
  }
  REQUIRE(files == manifest.size());
}

TEST_CASE("no case of the small reference data fails", "[conformance]") {
  require_no_failure(test::fixture("golden"));
}

TEST_CASE("a call without a folder gets the usage, a missing folder is named", "[conformance]") {
  const test::CommandResult missing = conformance("/nowhere/at/all");
  REQUIRE(missing.exit_code == 2);
  REQUIRE_THAT(missing.err, ContainsSubstring("'/nowhere/at/all' is not a folder"));
  const test::TemporaryFolder empty;
  const test::CommandResult nothing = conformance(empty.path().string());
  REQUIRE(nothing.exit_code == 2);
  REQUIRE_THAT(nothing.err, ContainsSubstring("holds no case"));
  REQUIRE_THAT(conformance(". .").err, ContainsSubstring("'.' is a folder, not a file"));
  for (const char* arguments : {"", "--help", ". . ."}) {
    const test::CommandResult result = conformance(arguments);
    REQUIRE(result.exit_code == 2);
    REQUIRE_THAT(result.err, ContainsSubstring("usage: aifs-conformance DIR"));
  }
}

TEST_CASE("a spoilt result fails its own case", "[conformance]") {
  const Copy losses("losses");
  losses.change("losses.safetensors", "mae_node_time/value", 1e-5f);
  losses.change("losses.safetensors", "huber_delta/grad", 1e-3f);
  losses.require_failures({"mae_node_time", "huber_delta"});

  const Copy processors("processors");
  processors.change("processors.safetensors", "norm_mixed/forward", 1e-6f);
  processors.change("processors.safetensors", "bound_chain/grad", 1e-3f);
  processors.change("processors.safetensors", "imputer_copy/loss_mask", -1.0f);
  processors.require_failures({"norm_mixed", "bound_chain", "imputer_copy"});
}

TEST_CASE("a wrapper that ignores NaN has a loss that does, or is refused", "[conformance]") {
  const Copy losses("losses_more");
  const std::string file = "losses_more.json";
  losses.replace(file, "\"weights\": [0.5, 0.5],",
                 "\"weights\": [0.5, 0.3, 0.2], \"ignore_nans\": true,");
  REQUIRE(counts_of(conformance(losses.path().string())).failed == 0);
  losses.replace(file, "0.2], \"ignore_nans\": true,", "0.2], \"ignore_nans\": false,");
  losses.require_failures({"multiscale_wrong_number_of_weights"});
}

TEST_CASE("other options than those of the reference fail", "[conformance]") {
  const Copy losses("losses");
  losses.replace("losses.json", "\"delta\": 0.35", "\"delta\": 0.36");
  losses.require_failures({"huber_delta"});

  const Copy tables("tables");
  tables.replace("partition.json", "\"parts\": 4", "\"parts\": 5");
  tables.replace("rollout.json", "\"epoch_increment\": 3", "\"epoch_increment\": 4");
  tables.replace("learning_rate.json", "\"warmup_t\": 20", "\"warmup_t\": 21");
  tables.replace("seeds.json", "\"derived_seed\": 2684470948", "\"derived_seed\": 2684470949");
  tables.replace("sampler.json", "\"batch_size\": 2", "\"batch_size\": 3");
  tables.replace("optimizers.json", "clamped to +-32", "clamped to +-31");
  tables.require_failures(
      {"partition/0", "rollout/2", "learning_rate/0", "seeds", "sampler/0", "adamw_clip_value"});
}

TEST_CASE("an option that is not known fails its case by name", "[conformance]") {
  const Copy losses("losses");
  losses.replace("losses.json", "\"delta\": 0.35", "\"gamma\": 0.35");
  const test::CommandResult result = conformance(losses.path().string());
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.out,
               ContainsSubstring("FAILED   not supported: training.training_loss.gamma: "));
  REQUIRE(counts_of(result).failed == 1);
}

TEST_CASE("a changed weight fails the model in both precisions", "[conformance]") {
  const Copy models("models");
  fs::copy(test::fixture("golden/graphs"), models.path() / "graphs");
  models.change("gnn.safetensors", "state/decoder.0.node_data_extractor.mlp.4.bias", 1e-3f);
  fs::remove(models.path() / "graphs" / "graph_o8_tri2.json");  // only its tensors are needed
  models.require_failures({"gnn", "gnn.f64"});
}

TEST_CASE("damaged files fail and do not stop the others", "[conformance]") {
  const Copy tables("tables");
  tables.cut("optimizers.safetensors", 4);
  tables.cut("seeds.json", 100);
  tables.require_failures({"optimizers.json", "seeds.json"});
}

TEST_CASE("what a case is called does not matter", "[conformance]") {
  const Copy spectral("losses_more");
  fs::remove(spectral.path() / "losses_more.json");
  const std::string file = "spectral_transforms";
  const test::Counts counts = spectral.counts();
  int number = 0;
  for (const char* name : {"fft2d_patches_overlap", "fft2d_patches_padded", "fft2d_patches",
                           "fft2d_filter", "fft2d", "dct2d", "inverse_octahedral", "regular_rows",
                           "octahedral_truncation_2", "inverse_classic_rows_odd_counts"})
    spectral.rename(file, name, "case_" + std::to_string(number++));
  const test::Counts renamed = spectral.counts();
  REQUIRE(renamed.failed == 0);
  REQUIRE(renamed.passed == counts.passed);
  spectral.change(file + ".safetensors", "case_0/output", 1e-2f);
  spectral.require_failures({"case_0"});
}

TEST_CASE("stored scalers act where their length fits, whatever they are called", "[conformance]") {
  const Copy models("models");
  fs::copy(test::fixture("golden/graphs"), models.path() / "graphs");
  fs::remove(models.path() / "graphs" / "graph_o8_tri2.json");
  models.replace("gnn.json", "\"node_weights\"", "\"areas\"");
  models.rewrite("gnn.safetensors", [](Copy::Tensors& tensors) {
    auto scaler = tensors.extract("scaler/node_weights");
    scaler.key() = "scaler/areas";
    tensors.insert(std::move(scaler));
  });
  REQUIRE(models.counts().passed == 2);
  models.change("gnn.safetensors", "scaler/areas", 1e-3f);
  models.require_failures({"gnn", "gnn.f64"});
}

TEST_CASE("training on a region depends on its mask, its boundary and the share of its nodes",
          "[conformance]") {
  const auto runs = [](const std::string& name) {
    std::vector<std::string> cases;
    for (const char* precision : {".fp32", ".bf16-mixed", ".fp64"})
      cases.push_back(name + precision);
    return cases;
  };
  const Copy mask("regional");
  REQUIRE(mask.counts().failed == 0);
  mask.replace("tiny_lam_train.json", "\"Boolean1DMask\"", "\"NoOutputMask\"");
  mask.rewrite("tiny_lam_train.safetensors",
               [](Copy::Tensors& tensors) { tensors.erase("output_mask"); });
  mask.require_failures(runs("tiny_lam_train"));

  const Copy steps("regional");
  steps.replace("tiny_lam_train.json", "\"rollout_steps\": 2", "\"rollout_steps\": 1");
  steps.require_failures(runs("tiny_lam_train"));

  const Copy share("regional");
  share.replace("tiny_stretched_train.json", "\"weight_frac_of_total\": 0.4",
                "\"weight_frac_of_total\": 0.41");
  share.require_failures(runs("tiny_stretched_train"));

  const Copy weights("regional");
  weights.change("tiny_stretched_train.safetensors", "after12/processor.proc.0.lin_query.weight",
                 1e-2f);
  weights.require_failures({"tiny_stretched_train.fp32"});
}

TEST_CASE("the mask of a case is the attribute that it names", "[conformance]") {
  const Copy regional("regional");
  regional.replace("tiny_lam_model.json", "\"attribute_name\": \"cutout_mask\"",
                   "\"attribute_name\": \"boundary_mask\"");
  regional.require_failures({"tiny_lam_model"});
}
